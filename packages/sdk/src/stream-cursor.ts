/**
 * Where a reader of one process's stream stands: pure, fed with one event after the other from however many
 * connections it takes. What it lets through is the stream once: a byte seen before is dropped, a byte missing without
 * a `resync_required` is an error and never silence.
 */
import type { ExitReason } from '@space/contract'
import { decodeBase64 } from './base64.ts'
import { clientError } from './errors.ts'
import type { ServerEvent } from './event-parser.ts'

export type OutputStream = 'stdout' | 'stderr' | 'pty'

export type CommandEvent =
  | {
      readonly type: 'process_started'
      readonly processId: string
      readonly pid: number
      readonly startedAt: string
    }
  | { readonly type: OutputStream; readonly data: Uint8Array<ArrayBuffer>; readonly offset: number }
  | {
      readonly type: 'resync_required'
      readonly epoch: number
      readonly firstOffset: number
      readonly lostBytes: number
    }
  | { readonly type: 'sandbox_state'; readonly state: string }
  | ({ readonly type: 'process_exited' } & ProcessExit)

export interface ProcessExit {
  readonly exitCode: number | null
  readonly signal: number | null
  readonly timedOut: boolean
  readonly reason: ExitReason
  /** The errno's name of a program that could not be started. */
  readonly errno?: string | undefined
}

export interface StreamCursor {
  /** The id to send as Last-Event-ID; empty before the first event. */
  lastEventId: string
  /** Offset of the next byte wanted; undefined when only an id is known. */
  nextOffset: number | undefined
  exited: boolean
}

/** Takes one event: returns what is new in it, or undefined when nothing is. */
export function accept(cursor: StreamCursor, event: ServerEvent): CommandEvent | undefined {
  if (event.id !== '') cursor.lastEventId = event.id
  switch (event.event) {
    case 'stdout':
    case 'stderr':
    case 'pty':
      return output(cursor, event.event, parse(event))
    case 'process_started': {
      const data = parse(event)
      return {
        type: 'process_started',
        processId: text(data, 'process_id'),
        pid: whole(data, 'pid'),
        startedAt: text(data, 'started_at'),
      }
    }
    case 'resync_required': {
      const data = parse(event)
      const firstOffset = whole(data, 'first_offset')
      cursor.nextOffset = firstOffset
      return {
        type: 'resync_required',
        epoch: whole(data, 'epoch'),
        firstOffset,
        lostBytes: whole(data, 'lost_bytes'),
      }
    }
    case 'sandbox_state':
      return { type: 'sandbox_state', state: text(parse(event), 'state') }
    case 'process_exited':
      cursor.exited = true
      return { type: 'process_exited', ...exit(parse(event)) }
    default:
      return undefined
  }
}

function output(
  cursor: StreamCursor,
  type: OutputStream,
  data: Record<string, unknown>,
): CommandEvent | undefined {
  const offset = whole(data, 'offset')
  const bytes = decodeBase64(text(data, 'data'))
  const wanted = cursor.nextOffset ?? offset
  if (offset > wanted)
    throw clientError(
      'protocol_error',
      `the stream skipped from byte ${wanted} to byte ${offset} without saying so`,
      false,
    )
  const end = offset + bytes.length
  if (end <= wanted) return undefined
  cursor.nextOffset = end
  return { type, data: bytes.subarray(wanted - offset), offset: wanted }
}

function exit(data: Record<string, unknown>): ProcessExit {
  const signal = data['signal']
  return {
    exitCode: typeof data['exit_code'] === 'number' ? data['exit_code'] : null,
    signal: typeof signal === 'number' ? signal : null,
    timedOut: data['timed_out'] === true,
    reason: text(data, 'reason') as ExitReason,
    ...(typeof data['errno'] === 'string' ? { errno: data['errno'] } : {}),
  }
}

function parse(event: ServerEvent): Record<string, unknown> {
  try {
    const data: unknown = JSON.parse(event.data)
    if (typeof data === 'object' && data !== null) return data as Record<string, unknown>
  } catch (error) {
    throw clientError('protocol_error', `a ${event.event} event is not JSON`, false, error)
  }
  throw clientError('protocol_error', `a ${event.event} event is not an object`, false)
}

function text(data: Record<string, unknown>, field: string): string {
  const value = data[field]
  if (typeof value === 'string') return value
  throw clientError('protocol_error', `an event of the stream lacks ${field}`, false)
}

function whole(data: Record<string, unknown>, field: string): number {
  const value = data[field]
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw clientError('protocol_error', `an event of the stream lacks ${field}`, false)
}
