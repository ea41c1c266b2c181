import type { ErrorBody, OperationKind, OperationState } from '@space/contract'
import type { Kysely } from 'kysely'
import type { Database, OperationRow } from './schema.ts'

export interface OperationFilter {
  readonly accountId: string
  readonly sandboxId: string | undefined
  readonly states: readonly OperationState[] | undefined
  readonly kinds: readonly OperationKind[] | undefined
  readonly beforeSeq: number | undefined
  readonly limit: number
}

/** An operation of an account; another account's is as if it did not exist. */
export async function findOperation(
  db: Kysely<Database>,
  accountId: string,
  id: string,
): Promise<OperationRow | undefined> {
  const row = await db.selectFrom('operations').selectAll().where('id', '=', id).executeTakeFirst()
  return row?.account_id === accountId ? row : undefined
}

/** Opens an operation. */
export function insertOperation(
  db: Kysely<Database>,
  operation: { id: string; accountId: string; sandboxId: string; kind: OperationKind; createdAtMs: number },
): Promise<OperationRow> {
  return db
    .insertInto('operations')
    .values({
      id: operation.id,
      account_id: operation.accountId,
      sandbox_id: operation.sandboxId,
      kind: operation.kind,
      state: 'pending',
      created_at: operation.createdAtMs,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Notes that a node was asked; what has ended stays ended. */
export async function beginOperation(db: Kysely<Database>, id: string, nowMs: number): Promise<void> {
  await db
    .updateTable('operations')
    .set({ state: 'running', started_at: nowMs })
    .where('id', '=', id)
    .where('state', '=', 'pending')
    .execute()
}

/** Ends an operation, once. */
export async function endOperation(
  db: Kysely<Database>,
  id: string,
  outcome: { readonly error: ErrorBody } | { readonly sandboxIds: readonly string[] },
  nowMs: number,
): Promise<void> {
  const ended =
    'error' in outcome
      ? { state: 'failed' as const, error: JSON.stringify(outcome.error) }
      : {
          state: 'succeeded' as const,
          result: JSON.stringify({ sandboxes: outcome.sandboxIds, snapshot: null, template: null }),
        }
  await db
    .updateTable('operations')
    .set((to) => ({ ...ended, ended_at: nowMs, started_at: to.fn.coalesce('started_at', to.val(nowMs)) }))
    .where('id', '=', id)
    .where('ended_at', 'is', null)
    .execute()
}

/** The newest operations that fit. */
export function listOperations(db: Kysely<Database>, filter: OperationFilter): Promise<OperationRow[]> {
  let query = db.selectFrom('operations').selectAll().where('account_id', '=', filter.accountId)
  if (filter.sandboxId !== undefined) query = query.where('sandbox_id', '=', filter.sandboxId)
  if (filter.states) query = query.where('state', 'in', [...filter.states])
  if (filter.kinds) query = query.where('kind', 'in', [...filter.kinds])
  if (filter.beforeSeq !== undefined) query = query.where('seq', '<', filter.beforeSeq)
  return query.orderBy('seq', 'desc').limit(filter.limit).execute()
}
