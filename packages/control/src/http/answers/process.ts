import { type ExitReason, exitReasons, limits, type Process, type Session } from '@space/contract'
import { toNullableTime, toTime } from '../../clock.ts'
import type { NewProcessRow } from '../../store/schema.ts'

/** A process as it is answered, from its summary or from what the node just said. */
export function processAnswer(row: NewProcessRow): Process {
  return {
    id: row.id,
    sandbox_id: row.sandbox_id,
    state: row.state,
    pid: row.pid ?? null,
    argv: JSON.parse(row.argv) as string[],
    metadata: JSON.parse(row.metadata) as Record<string, string>,
    exit_code: row.exit_code ?? null,
    signal: row.signal ?? null,
    timed_out: row.timed_out !== 0,
    reason: toReason(row.reason),
    errno: row.errno ?? null,
    created_at: toTime(row.created_at),
    started_at: toNullableTime(row.started_at ?? null),
    exited_at: toNullableTime(row.exited_at ?? null),
    output: {
      bytes: row.output_bytes,
      first_offset: row.output_first_offset,
      next_offset: row.output_next_offset,
    },
  }
}

/** A session as it is answered; the token is put in when the answer is sent. */
export function sessionAnswer(id: string, dataPlaneUrl: string, createdAtMs: number): Omit<Session, 'token'> {
  return {
    id,
    events_url: `${dataPlaneUrl}/v1/sessions/${id}/events`,
    expires_at: toTime(createdAtMs + limits.session_attach_seconds * 1000),
  }
}

function toReason(reason: string | null | undefined): ExitReason | null {
  return exitReasons.find((known) => known === reason) ?? null
}
