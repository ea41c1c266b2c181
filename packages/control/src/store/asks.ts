/** The outbox: what nodes must be asked. Each row is worked on by who holds its lease, and done again when that ends. */
import type { SandboxState } from '@space/contract'
import type { NodeAsk } from '@space/core'
import type { Kysely } from 'kysely'
import type { AskRow, Database } from './schema.ts'

/** Puts an ask in place of whatever was asked of this sandbox before; it is due at once and belongs to nobody. */
export async function putAsk(
  db: Kysely<Database>,
  sandboxId: string,
  ask: NodeAsk,
  nowMs: number,
): Promise<void> {
  const fresh = { ask, attempts: 0, due_at: nowMs, lease_owner: null, lease_until: null }
  await db
    .insertInto('asks')
    .values({ sandbox_id: sandboxId, generation: 1, ...fresh })
    .onConflict((conflict) =>
      conflict
        .column('sandbox_id')
        .doUpdateSet((to) => ({ ...fresh, generation: to('asks.generation', '+', 1) })),
    )
    .execute()
}

/** Takes up to `limit` due asks that nobody works on; each is ours until `leaseUntil`. */
export async function claimAsks(
  db: Kysely<Database>,
  claim: {
    readonly owner: string
    readonly nowMs: number
    readonly leaseUntil: number
    readonly limit: number
  },
): Promise<AskRow[]> {
  const free = await db
    .selectFrom('asks')
    .select('sandbox_id')
    .where('due_at', '<=', claim.nowMs)
    .where((where) => where.or([where('lease_until', 'is', null), where('lease_until', '<=', claim.nowMs)]))
    .orderBy('due_at')
    .limit(claim.limit)
    .execute()
  if (free.length === 0) return []
  return await db
    .updateTable('asks')
    .set({ lease_owner: claim.owner, lease_until: claim.leaseUntil })
    .where(
      'sandbox_id',
      'in',
      free.map((row) => row.sandbox_id),
    )
    .returningAll()
    .execute()
}

/** Keeps the leases of work that is still under way. */
export async function renewLeases(
  db: Kysely<Database>,
  owner: string,
  sandboxIds: readonly string[],
  leaseUntil: number,
): Promise<void> {
  await db
    .updateTable('asks')
    .set({ lease_until: leaseUntil })
    .where('lease_owner', '=', owner)
    .where('sandbox_id', 'in', [...sandboxIds])
    .execute()
}

/** The ask is done; a newer one in its place stays. */
export async function removeAsk(db: Kysely<Database>, ask: AskRow): Promise<void> {
  await db
    .deleteFrom('asks')
    .where('sandbox_id', '=', ask.sandbox_id)
    .where('generation', '=', ask.generation)
    .execute()
}

/** The ask failed: free again, and due later. */
export async function postponeAsk(db: Kysely<Database>, ask: AskRow, dueAtMs: number): Promise<void> {
  await db
    .updateTable('asks')
    .set({ attempts: ask.attempts + 1, due_at: dueAtMs, lease_owner: null, lease_until: null })
    .where('sandbox_id', '=', ask.sandbox_id)
    .where('generation', '=', ask.generation)
    .execute()
}

/** Frees all leases: for a store only one process uses, whose predecessor is gone. */
export async function freeAllLeases(db: Kysely<Database>): Promise<void> {
  await db.updateTable('asks').set({ lease_owner: null, lease_until: null }).execute()
}

/** Sandboxes on their way whose ask is missing, whatever the reason; with `id`, only that one. */
export function sandboxesWithoutAsk(
  db: Kysely<Database>,
  limit: number,
  id?: string,
): Promise<{ id: string; state: SandboxState }[]> {
  let query = db
    .selectFrom('sandboxes')
    .leftJoin('asks', 'asks.sandbox_id', 'sandboxes.id')
    .select(['sandboxes.id', 'sandboxes.state'])
    .where('sandboxes.state', 'in', ['creating', 'deleting'])
    .where('asks.sandbox_id', 'is', null)
  if (id !== undefined) query = query.where('sandboxes.id', '=', id)
  return query.limit(limit).execute()
}
