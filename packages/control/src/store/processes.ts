import type { Kysely } from 'kysely'
import type { Database, NewProcessRow, ProcessRow } from './schema.ts'

/** The summary of a process; only of that sandbox. */
export function findProcess(
  db: Kysely<Database>,
  sandboxId: string,
  id: string,
): Promise<ProcessRow | undefined> {
  return db
    .selectFrom('processes')
    .selectAll()
    .where('id', '=', id)
    .where('sandbox_id', '=', sandboxId)
    .executeTakeFirst()
}

/**
 * Writes what a node said last about a process. A summary that says it ended is never undone by an older word that it
 * runs, and the owner never changes.
 */
export async function putProcess(db: Kysely<Database>, row: NewProcessRow): Promise<void> {
  const { id: _id, sandbox_id: _sandbox, account_id: _account, created_at: _created, ...news } = row
  await db
    .insertInto('processes')
    .values(row)
    .onConflict((conflict) =>
      conflict
        .column('id')
        .doUpdateSet(news)
        .where('processes.exited_at', 'is', null)
        .where('processes.sandbox_id', '=', row.sandbox_id),
    )
    .execute()
}

/** The newest summaries of a sandbox. */
export function listProcesses(
  db: Kysely<Database>,
  filter: { readonly sandboxId: string; readonly beforeSeq: number | undefined; readonly limit: number },
): Promise<ProcessRow[]> {
  let query = db.selectFrom('processes').selectAll().where('sandbox_id', '=', filter.sandboxId)
  if (filter.beforeSeq !== undefined) query = query.where('seq', '<', filter.beforeSeq)
  return query.orderBy('seq', 'desc').limit(filter.limit).execute()
}

/** A deleted sandbox runs nothing: what was not known to have ended, ended with it. */
export async function endProcessesOfDeleted(
  db: Kysely<Database>,
  sandboxId: string,
  nowMs: number,
): Promise<void> {
  await db
    .updateTable('processes')
    .set({ state: 'exited', reason: 'sandbox_deleted', exited_at: nowMs })
    .where('sandbox_id', '=', sandboxId)
    .where('exited_at', 'is', null)
    .execute()
}
