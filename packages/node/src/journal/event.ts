import type { ProcessExitedEvent, ProcessStartedEvent, SandboxStateEvent } from '@space/contract'

/** Events that stand in a journal between the bytes; their data is what the stream shows. */
export type JournalEvent =
  | { readonly event: 'process_started'; readonly data: ProcessStartedEvent }
  | { readonly event: 'process_exited'; readonly data: ProcessExitedEvent }
  | { readonly event: 'sandbox_state'; readonly data: SandboxStateEvent }

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
