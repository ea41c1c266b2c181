import { PublicError } from '@space/contract'
import type { Kysely } from 'kysely'
import { findOperation } from '../store/operations.ts'
import type { Database, OperationRow, SandboxRow } from '../store/schema.ts'
import { changeSandbox, readLifecycle } from './change.ts'
import type { IdSource } from './ids.ts'
import type { Lifecycle } from './lifecycle.ts'

/**
 * Accepts a delete inside the caller's transaction. One that is under way is joined; a deleted sandbox is deleted again
 * by an operation that is born succeeded.
 */
export async function deleteSandbox(
  db: Kysely<Database>,
  lifecycle: Lifecycle,
  before: SandboxRow,
  ids: IdSource,
): Promise<OperationRow> {
  const event = { kind: 'delete_requested', operationId: ids('operation') } as const
  const { row, opened } = await changeSandbox(db, before, event, lifecycle.clock.nowMs(), lifecycle.limits)
  if (opened) return opened
  const { phase } = readLifecycle(row.lifecycle)
  const underWay = phase.kind === 'deleting' ? phase.operationId : undefined
  const operation = underWay === undefined ? undefined : await findOperation(db, row.account_id, underWay)
  if (!operation) throw new PublicError('internal', 'A delete left no operation.')
  return operation
}
