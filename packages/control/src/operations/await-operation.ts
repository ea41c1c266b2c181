import { findOperation } from '../store/operations.ts'
import type { OperationRow } from '../store/schema.ts'
import type { Lifecycle } from './lifecycle.ts'

/** An operation when it ended or the time is up, whichever comes first; undefined when there is none. */
export async function awaitOperation(
  lifecycle: Lifecycle,
  operation: OperationRow,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<OperationRow> {
  const { read } = lifecycle.store
  let latest = operation
  const look = async () => {
    latest = (await findOperation(read, operation.account_id, operation.id)) ?? latest
    return latest.ended_at === null ? undefined : latest
  }
  await lifecycle.bell.waitFor(operation.sandbox_id, look, timeoutMs, signal)
  return latest
}
