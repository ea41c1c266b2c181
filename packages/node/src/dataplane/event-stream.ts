/**
 * One open event stream: a journal's items into a socket, as fast as the socket takes them. Nothing waits in memory but
 * the item being sent (B3). It ends behind `process_exited`, when the client goes, or when its token is worth nothing
 * any more.
 */
import type { ServerResponse } from 'node:http'
import { limits, streamRetryMs } from '@space/contract'
import { type Journal, type Position, readJournal } from '../journal/index.ts'
import { eventTexts, keepAliveText, retryText } from './sse.ts'

export interface EventStreamOptions {
  readonly response: ServerResponse
  readonly journal: Journal
  readonly from: Position
  readonly headers: Readonly<Record<string, string>>
  /** Ends the stream, whatever it is doing. */
  readonly signal: AbortSignal
}

/** Resolves when the stream is over; rejects only for a journal that cannot be read. */
export async function sendEvents(options: EventStreamOptions): Promise<void> {
  const { response, journal, from } = options
  const over = new AbortController()
  const end = () => over.abort()
  options.signal.addEventListener('abort', end, { once: true })
  if (options.signal.aborted) end()
  response.once('close', end)
  response.on('error', end)
  const keepAlive = setInterval(() => {
    if (!response.writableNeedDrain) response.write(keepAliveText)
  }, limits.stream_keep_alive_seconds * 1000)
  try {
    response.writeHead(200, {
      ...options.headers,
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
    })
    response.write(retryText(streamRetryMs))
    for await (const item of readJournal(journal, from, { signal: over.signal })) {
      for (const text of eventTexts(item)) {
        if (!response.write(text, 'latin1')) await drained(response, over.signal)
      }
      keepAlive.refresh()
    }
    response.end()
  } catch (error) {
    response.destroy()
    if (!over.signal.aborted) throw error
  } finally {
    clearInterval(keepAlive)
    options.signal.removeEventListener('abort', end)
    response.off('close', end)
  }
}

function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const done = () => {
      signal.removeEventListener('abort', stop)
      resolve()
    }
    const stop = () => {
      response.off('drain', done)
      reject(signal.reason)
    }
    response.once('drain', done)
    signal.addEventListener('abort', stop, { once: true })
  })
}
