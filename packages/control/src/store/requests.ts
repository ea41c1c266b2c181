import type { Kysely, Selectable } from 'kysely'
import type { Database, RequestsTable } from './schema.ts'

export type RequestRow = Selectable<RequestsTable>

export function findRequest(
  db: Kysely<Database>,
  accountId: string,
  key: string,
): Promise<RequestRow | undefined> {
  return db
    .selectFrom('requests')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('key', '=', key)
    .executeTakeFirst()
}

/** Remembers a request under its key, in place of one that was forgotten. */
export async function putRequest(db: Kysely<Database>, row: RequestRow): Promise<void> {
  const { account_id: _account, key: _key, ...news } = row
  await db
    .insertInto('requests')
    .values(row)
    .onConflict((conflict) => conflict.columns(['account_id', 'key']).doUpdateSet(news))
    .execute()
}

/** Keeps the first answer of a remembered request. */
export async function answerRequest(
  db: Kysely<Database>,
  accountId: string,
  key: string,
  answer: string,
): Promise<void> {
  await db
    .updateTable('requests')
    .set({ answer })
    .where('account_id', '=', accountId)
    .where('key', '=', key)
    .execute()
}

/** Forgets a request that failed before it changed anything, so that it can be tried again. */
export async function forgetRequest(db: Kysely<Database>, accountId: string, key: string): Promise<void> {
  await db
    .deleteFrom('requests')
    .where('account_id', '=', accountId)
    .where('key', '=', key)
    .where('answer', 'is', null)
    .execute()
}
