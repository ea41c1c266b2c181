/** The text of stream events: `id`, `event`, one line of JSON. */
import { formatPosition, type JournalItem } from '../journal/index.ts'

/** Sent once at the start of a stream. */
export function retryText(retryMs: number): string {
  return `retry: ${retryMs}\n\n`
}

/** Ignored by every client; keeps what lies between from closing a quiet connection. */
export const keepAliveText = ': keep-alive\n\n'

/** Most bytes of one event: its text is young garbage, and base64 needs no padding between events. */
const maxEventBytes = 48 * 1024

/** One item of a journal as events; all of it is ASCII. */
export function* eventTexts(item: JournalItem): Generator<string> {
  if (item.kind !== 'output') {
    yield otherText(item)
    return
  }
  const { position, stream, offset, data } = item
  for (let from = 0; from < data.length; from += maxEventBytes) {
    const piece = data.subarray(from, from + maxEventBytes)
    const id = formatPosition({ ...position, offset: offset + from + piece.length })
    yield `id: ${id}\nevent: ${stream}\ndata: {"data":"${piece.toString('base64')}","offset":${offset + from}}\n\n`
  }
}

function otherText(item: Exclude<JournalItem, { kind: 'output' }>): string {
  const head = `id: ${formatPosition(item.position)}\nevent: `
  switch (item.kind) {
    case 'event':
      return `${head}${item.event.event}\ndata: ${JSON.stringify(item.event.data)}\n\n`
    case 'gap': {
      const { epoch, offset } = item.position
      const data = { epoch, first_offset: offset, lost_bytes: item.lostBytes }
      return `${head}resync_required\ndata: ${JSON.stringify(data)}\n\n`
    }
  }
}
