/** The text of stream events: `id`, `event`, one line of JSON. */
import { formatPosition, type JournalItem } from '../journal/index.ts'

/** Sent once at the start of a stream. */
export function retryText(retryMs: number): string {
  return `retry: ${retryMs}\n\n`
}

/** Ignored by every client; keeps what lies between from closing a quiet connection. */
export const keepAliveText = ': keep-alive\n\n'

/** One item of a journal as an event; all of it is ASCII. */
export function eventText(item: JournalItem): string {
  const head = `id: ${formatPosition(item.position)}\nevent: `
  switch (item.kind) {
    case 'output':
      return `${head}${item.stream}\ndata: {"data":"${item.data.toString('base64')}","offset":${item.offset}}\n\n`
    case 'event':
      return `${head}${item.event.event}\ndata: ${JSON.stringify(item.event.data)}\n\n`
    case 'gap': {
      const { epoch, offset } = item.position
      const data = { epoch, first_offset: offset, lost_bytes: item.lostBytes }
      return `${head}resync_required\ndata: ${JSON.stringify(data)}\n\n`
    }
  }
}
