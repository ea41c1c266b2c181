/** Events that stand in a journal between the bytes; their data is what the stream shows. */
export type JournalEvent =
  | { readonly event: 'process_started'; readonly data: ProcessStarted }
  | { readonly event: 'process_exited'; readonly data: ProcessExited }
  | { readonly event: 'sandbox_state'; readonly data: { readonly state: string } }

export interface ProcessStarted {
  readonly process_id: string
  readonly pid: number
  /** RFC 3339 UTC with milliseconds. */
  readonly started_at: string
}

export type ExitReason =
  | 'exited'
  | 'signalled'
  | 'timeout'
  | 'out_of_memory'
  | 'failed_to_start'
  | 'cancelled'
  | 'lost'
  | 'sandbox_deleted'

export interface ProcessExited {
  readonly exit_code: number | null
  readonly signal: number | null
  readonly timed_out: boolean
  readonly reason: ExitReason
  /** Why it could not start, in the words of Linux: `ENOENT`. */
  readonly errno?: string
}

/** The bytes of an event's record. */
export function encodeEvent(event: JournalEvent): Buffer {
  return Buffer.from(JSON.stringify(event))
}

/** Reads an event's record; undefined when it holds none this version knows. */
export function decodeEvent(data: Buffer): JournalEvent | undefined {
  try {
    const parsed: unknown = JSON.parse(data.toString())
    return isEvent(parsed) ? parsed : undefined
  } catch {
    return undefined
  }
}

/** Whether a record is the last one of its journal. */
export function isEndEvent(data: Buffer): boolean {
  return decodeEvent(data)?.event === 'process_exited'
}

function isEvent(value: unknown): value is JournalEvent {
  if (typeof value !== 'object' || value === null || !('event' in value) || !('data' in value)) return false
  const known =
    value.event === 'process_started' || value.event === 'process_exited' || value.event === 'sandbox_state'
  return known && typeof value.data === 'object' && value.data !== null
}
