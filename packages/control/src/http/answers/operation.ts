import type { Operation, RecordedError } from '@space/contract'
import { toNullableTime, toTime } from '../../clock.ts'
import type { OperationRow } from '../../store/schema.ts'

/** An operation as it is answered. */
export function operationAnswer(row: OperationRow): Operation {
  return {
    id: row.id,
    kind: row.kind,
    state: row.state,
    sandbox_id: row.sandbox_id,
    created_at: toTime(row.created_at),
    started_at: toNullableTime(row.started_at),
    ended_at: toNullableTime(row.ended_at),
    error: row.error === null ? null : (JSON.parse(row.error) as RecordedError),
    result: row.result === null ? null : (JSON.parse(row.result) as Operation['result']),
  }
}
