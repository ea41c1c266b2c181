import { PublicError, type SandboxState } from '@space/contract'
import type { Kysely } from 'kysely'
import type { Database, NewSandboxRow, SandboxRow } from './schema.ts'

export interface SandboxFilter {
  readonly accountId: string
  readonly states: readonly SandboxState[] | undefined
  /** Template names or digests, any of which fits. */
  readonly templates: readonly string[] | undefined
  readonly metadata: Readonly<Record<string, string>>
  /** Only rows older than this one. */
  readonly beforeSeq: number | undefined
  readonly limit: number
}

/** A sandbox of an account; another account's is as if it did not exist. */
export async function findSandbox(
  db: Kysely<Database>,
  accountId: string,
  id: string,
): Promise<SandboxRow | undefined> {
  const row = await getSandbox(db, id)
  return row?.account_id === accountId ? row : undefined
}

/** A sandbox by id alone, for the reconciler and the node link. */
export function getSandbox(db: Kysely<Database>, id: string): Promise<SandboxRow | undefined> {
  return db.selectFrom('sandboxes').selectAll().where('id', '=', id).executeTakeFirst()
}

/** Writes a new sandbox with the pairs it can be found by. */
export async function insertSandbox(db: Kysely<Database>, row: NewSandboxRow): Promise<SandboxRow> {
  const inserted = await db.insertInto('sandboxes').values(row).returningAll().executeTakeFirstOrThrow()
  await writeMetadata(db, inserted.id, inserted.metadata)
  return inserted
}

/** Writes a change of a sandbox, unless someone else changed it since it was read. */
export async function updateSandbox(
  db: Kysely<Database>,
  before: SandboxRow,
  changes: Partial<NewSandboxRow>,
): Promise<SandboxRow> {
  const after = await db
    .updateTable('sandboxes')
    .set({ ...changes, version: before.version + 1 })
    .where('id', '=', before.id)
    .where('version', '=', before.version)
    .returningAll()
    .executeTakeFirst()
  if (!after)
    throw new PublicError('conflict', 'The sandbox was changed at the same time: try again.', {
      details: { reason: 'changed_meanwhile' },
    })
  return after
}

/** Replaces the pairs a sandbox can be found by. */
export async function replaceMetadata(db: Kysely<Database>, id: string, metadata: string): Promise<void> {
  await db.deleteFrom('sandbox_metadata').where('sandbox_id', '=', id).execute()
  await writeMetadata(db, id, metadata)
}

async function writeMetadata(db: Kysely<Database>, id: string, metadata: string): Promise<void> {
  const pairs = Object.entries(JSON.parse(metadata) as Record<string, string>)
  if (pairs.length === 0) return
  await db
    .insertInto('sandbox_metadata')
    .values(pairs.map(([key, value]) => ({ sandbox_id: id, key, value })))
    .execute()
}

/** The newest sandboxes that fit; deleted ones only when their state was asked for. */
export function listSandboxes(db: Kysely<Database>, filter: SandboxFilter): Promise<SandboxRow[]> {
  let query = db.selectFrom('sandboxes').selectAll().where('account_id', '=', filter.accountId)
  query = filter.states
    ? query.where('state', 'in', [...filter.states])
    : query.where('state', '<>', 'deleted')
  if (filter.beforeSeq !== undefined) query = query.where('seq', '<', filter.beforeSeq)
  const { templates } = filter
  if (templates)
    query = query.where((where) =>
      where.or([where('template_ref', 'in', [...templates]), where('template_digest', 'in', [...templates])]),
    )
  for (const [key, value] of Object.entries(filter.metadata))
    query = query.where('id', 'in', (from) =>
      from
        .selectFrom('sandbox_metadata')
        .select('sandbox_id')
        .where('key', '=', key)
        .where('value', '=', value),
    )
  return query.orderBy('seq', 'desc').limit(filter.limit).execute()
}

/** Sandboxes for which time has come, the longest overdue first. */
export function dueSandboxes(db: Kysely<Database>, nowMs: number, limit: number): Promise<{ id: string }[]> {
  return db
    .selectFrom('sandboxes')
    .select('id')
    .where('due_at', '<=', nowMs)
    .orderBy('due_at')
    .limit(limit)
    .execute()
}
