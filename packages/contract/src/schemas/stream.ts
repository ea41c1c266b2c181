/**
 * Events of a command session (`text/event-stream`). The SSE id of each is `EPOCH.OFFSET.N`: OFFSET is the next byte
 * wanted, N counts the other events at that offset, so sending it back as `Last-Event-ID` resumes at the exact byte.
 */
import { type Static, Type } from 'typebox'
import { nullableInteger, oneOf, time } from './parts.ts'
import { exitReasons } from './process.ts'
import { sandboxStates } from './sandbox.ts'

export const ProcessStartedEvent = Type.Object(
  { process_id: Type.String(), pid: Type.Integer(), started_at: time() },
  { $id: 'ProcessStartedEvent' },
)
export type ProcessStartedEvent = Static<typeof ProcessStartedEvent>

export const OutputEvent = Type.Object(
  {
    data: Type.String({ description: 'base64' }),
    offset: Type.Integer({ description: 'Of the first byte, all streams of the process counted together.' }),
  },
  { $id: 'OutputEvent' },
)
export type OutputEvent = Static<typeof OutputEvent>

export const ProcessExitedEvent = Type.Object(
  {
    exit_code: nullableInteger(),
    signal: nullableInteger(),
    timed_out: Type.Boolean(),
    reason: oneOf(exitReasons),
    errno: Type.Optional(Type.String()),
  },
  { $id: 'ProcessExitedEvent', description: 'The only sign of completion; follows the last byte.' },
)
export type ProcessExitedEvent = Static<typeof ProcessExitedEvent>

export const ResyncRequiredEvent = Type.Object(
  { epoch: Type.Integer(), first_offset: Type.Integer(), lost_bytes: Type.Integer() },
  { $id: 'ResyncRequiredEvent', description: 'The bytes asked for are gone; says where the rest begins.' },
)
export type ResyncRequiredEvent = Static<typeof ResyncRequiredEvent>

export const SandboxStateEvent = Type.Object(
  { state: oneOf(sandboxStates) },
  { $id: 'SandboxStateEvent', description: 'The stream stays open across pause, suspend and wake.' },
)
export type SandboxStateEvent = Static<typeof SandboxStateEvent>

/** Event names with the schema of their data. */
export const streamEvents = {
  process_started: ProcessStartedEvent,
  stdout: OutputEvent,
  stderr: OutputEvent,
  pty: OutputEvent,
  process_exited: ProcessExitedEvent,
  resync_required: ResyncRequiredEvent,
  sandbox_state: SandboxStateEvent,
} as const

export type StreamEventName = keyof typeof streamEvents

export type StreamEvent = {
  [Name in StreamEventName]: { event: Name; id: string; data: Static<(typeof streamEvents)[Name]> }
}[StreamEventName]

/** What clients wait before reconnecting, sent once as `retry:`. */
export const streamRetryMs = 1000
