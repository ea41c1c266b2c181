import type { Kysely } from 'kysely'
import type { Database, SessionRow } from './schema.ts'

/** A session by id; whether its token may still open it is for `auth/sessions.ts` to say. */
export function getSession(db: Kysely<Database>, id: string): Promise<SessionRow | undefined> {
  return db.selectFrom('sessions').selectAll().where('id', '=', id).executeTakeFirst()
}

/** Writes a session; doing it again changes nothing. */
export async function insertSession(db: Kysely<Database>, row: SessionRow): Promise<void> {
  await db
    .insertInto('sessions')
    .values(row)
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
}

/** Notes the first attach. */
export async function markAttached(db: Kysely<Database>, id: string, nowMs: number): Promise<void> {
  await db
    .updateTable('sessions')
    .set({ attached_at: nowMs })
    .where('id', '=', id)
    .where('attached_at', 'is', null)
    .execute()
}
