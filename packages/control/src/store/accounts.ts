import { PublicError } from '@space/contract'
import type { Kysely } from 'kysely'
import type { AccountRow, Database, TokenRow } from './schema.ts'

export interface Page {
  readonly beforeSeq: number | undefined
  readonly limit: number
}

export function getAccount(db: Kysely<Database>, id: string): Promise<AccountRow | undefined> {
  return db.selectFrom('accounts').selectAll().where('id', '=', id).executeTakeFirst()
}

export function findAccountByName(db: Kysely<Database>, name: string): Promise<AccountRow | undefined> {
  return db.selectFrom('accounts').selectAll().where('name', '=', name).executeTakeFirst()
}

/** Makes an account; a name is given once. */
export async function insertAccount(
  db: Kysely<Database>,
  account: { readonly id: string; readonly name: string; readonly createdAtMs: number },
): Promise<AccountRow> {
  if (await findAccountByName(db, account.name))
    throw new PublicError('conflict', 'name: an account of this name exists: choose another.', {
      details: { field: 'name', reason: 'name_taken' },
      retryable: false,
    })
  return await db
    .insertInto('accounts')
    .values({ id: account.id, name: account.name, created_at: account.createdAtMs })
    .returningAll()
    .executeTakeFirstOrThrow()
}

export function listAccounts(db: Kysely<Database>, page: Page): Promise<AccountRow[]> {
  let query = db.selectFrom('accounts').selectAll()
  if (page.beforeSeq !== undefined) query = query.where('seq', '<', page.beforeSeq)
  return query.orderBy('seq', 'desc').limit(page.limit).execute()
}

export function getToken(db: Kysely<Database>, id: string): Promise<TokenRow | undefined> {
  return db.selectFrom('tokens').selectAll().where('id', '=', id).executeTakeFirst()
}

/** Writes a token's hash and what it may do. */
export function insertToken(db: Kysely<Database>, row: Omit<TokenRow, 'seq'>): Promise<TokenRow> {
  return db.insertInto('tokens').values(row).returningAll().executeTakeFirstOrThrow()
}

/** The tokens of an account that were not revoked. */
export function listTokens(db: Kysely<Database>, accountId: string, page: Page): Promise<TokenRow[]> {
  let query = db
    .selectFrom('tokens')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
  if (page.beforeSeq !== undefined) query = query.where('seq', '<', page.beforeSeq)
  return query.orderBy('seq', 'desc').limit(page.limit).execute()
}

/** Ends a token for good. */
export async function revokeToken(db: Kysely<Database>, id: string, nowMs: number): Promise<void> {
  await db
    .updateTable('tokens')
    .set({ revoked_at: nowMs })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .execute()
}
