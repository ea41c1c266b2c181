/**
 * The events of one command session, over as many connections as it takes:
 *
 *   connect ──► read ──► process_exited ──► done
 *      ▲          │ connection lost, silent for too long, or refused for a passing reason
 *      └── wait ◄─┘ (doubling, from nothing; given up after maxOutageMs without an event)
 *
 * Each connection continues behind the last event that was handed on (Last-Event-ID), so that every byte arrives once.
 * The reader's pace is the connection's pace: nothing is read ahead of what the caller takes.
 */
import { backoffMs, sleep } from './backoff.ts'
import { clientError, SpaceError } from './errors.ts'
import { EventParser } from './event-parser.ts'
import { accept, type CommandEvent, type StreamCursor } from './stream-cursor.ts'
import type { Transport } from './transport.ts'

export interface EventStreamOptions {
  /** Starts at this byte of the output instead of the first. */
  readonly fromOffset?: number | undefined
  /** Continues behind the event with this id. */
  readonly lastEventId?: string | undefined
  /** Told each time the connection is lost and will be tried again. */
  readonly onLost?: ((loss: StreamLoss) => void) | undefined
  /** How long to go on trying without a single event, in milliseconds. */
  readonly maxOutageMs?: number | undefined
  /** A connection silent for this long counts as lost; the server sends a comment every 15 s. */
  readonly maxSilenceMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface StreamLoss {
  readonly error: SpaceError
  readonly attempt: number
  readonly waitMs: number
}

const reconnectBackoff = { firstMs: 100, maxMs: 5_000 }
const defaultMaxOutageMs = 120_000
const defaultMaxSilenceMs = 45_000

/** Follows a session until its process has exited; leaving the loop early ends the connection, not the process. */
export async function* sessionEvents(
  transport: Transport,
  session: { readonly events_url: string; readonly token: string },
  options: EventStreamOptions = {},
): AsyncGenerator<CommandEvent, void, void> {
  const cursor: StreamCursor = {
    lastEventId: options.lastEventId ?? '',
    nextOffset: options.lastEventId === undefined ? (options.fromOffset ?? 0) : undefined,
    exited: false,
  }
  const maxOutageMs = options.maxOutageMs ?? defaultMaxOutageMs
  let failures = 0
  let lastEventAtMs = performance.now()
  for (;;) {
    let error: SpaceError
    try {
      for await (const event of connection(transport, session, cursor, options)) {
        failures = 0
        yield event
        lastEventAtMs = performance.now()
      }
      if (cursor.exited) return
      error = clientError('connection_failed', 'the connection ended before the process did', true)
    } catch (thrown) {
      if (!(thrown instanceof SpaceError) || !isPassing(thrown)) throw thrown
      error = thrown
    }
    if (performance.now() - lastEventAtMs > maxOutageMs) throw givenUp(error, cursor, maxOutageMs)
    const waitMs =
      failures === 0 ? 0 : (error.retryAfterMs ?? backoffMs(reconnectBackoff, failures - 1, Math.random()))
    failures++
    options.onLost?.({ error, attempt: failures, waitMs })
    await sleep(Math.min(waitMs, maxOutageMs), options.signal)
  }
}

async function* connection(
  transport: Transport,
  session: { readonly events_url: string; readonly token: string },
  cursor: StreamCursor,
  options: EventStreamOptions,
): AsyncGenerator<CommandEvent, void, void> {
  const end = new AbortController()
  const signal = options.signal === undefined ? end.signal : AbortSignal.any([options.signal, end.signal])
  const maxSilenceMs = options.maxSilenceMs ?? defaultMaxSilenceMs
  // Only the time spent waiting for the server counts: a caller that takes its time is no silence.
  let waitingSinceMs: number | undefined = performance.now()
  const watch = setInterval(() => {
    if (waitingSinceMs !== undefined && performance.now() - waitingSinceMs > maxSilenceMs) end.abort()
  }, maxSilenceMs / 4)
  try {
    const response = await transport.open({ method: 'GET', ...request(session, cursor), signal })
    if (response.status === 204 || response.body === null) {
      cursor.exited = true
      return
    }
    const parser = new EventParser()
    const reader = response.body.getReader()
    for (;;) {
      waitingSinceMs = performance.now()
      const { done, value } = await reader.read()
      waitingSinceMs = undefined
      if (done) return
      for (const event of parser.push(value)) {
        const news = accept(cursor, event)
        if (news !== undefined) yield news
        if (cursor.exited) return
      }
    }
  } catch (error) {
    if (options.signal?.aborted) throw options.signal.reason
    if (end.signal.aborted) throw clientError('connection_failed', 'the data plane fell silent', true, error)
    if (error instanceof SpaceError) throw error
    throw clientError('connection_failed', 'the connection to the data plane was lost', true, error)
  } finally {
    clearInterval(watch)
    end.abort()
  }
}

function request(session: { readonly events_url: string; readonly token: string }, cursor: StreamCursor) {
  const headers: Record<string, string> = { accept: 'text/event-stream' }
  let url = session.events_url
  if (cursor.lastEventId !== '') headers['last-event-id'] = cursor.lastEventId
  else if (cursor.nextOffset !== undefined && cursor.nextOffset > 0)
    url += `?from_offset=${cursor.nextOffset}`
  return { url, headers, token: session.token }
}

function isPassing(error: SpaceError): boolean {
  return error.retryable || error.status >= 500
}

function givenUp(error: SpaceError, cursor: StreamCursor, maxOutageMs: number): SpaceError {
  return new SpaceError({
    code: 'stream_lost',
    message: `the stream could not be continued for ${Math.round(maxOutageMs / 1000)} s: ${error.message}`,
    status: error.status,
    details: { last_event_id: cursor.lastEventId, next_offset: cursor.nextOffset },
    retryable: true,
    requestId: error.requestId,
    cause: error,
  })
}
