import type { RetentionCutoffs } from '@space/core'
import type { Kysely } from 'kysely'
import type { Database } from './schema.ts'

const maxRowsEach = 500

/** Removes a bounded number of rows whose time is over; the next sweep takes the rest. */
export async function purge(db: Kysely<Database>, cutoffs: RetentionCutoffs): Promise<void> {
  await db
    .deleteFrom('requests')
    .where((where) =>
      where.and([
        where('created_at', '<=', cutoffs.idempotencyCreatedAtMs),
        where('key', 'in', (from) =>
          from
            .selectFrom('requests')
            .select('key')
            .where('created_at', '<=', cutoffs.idempotencyCreatedAtMs)
            .limit(maxRowsEach),
        ),
      ]),
    )
    .execute()
  await db
    .deleteFrom('events')
    .where('seq', 'in', (from) =>
      from
        .selectFrom('events')
        .select('seq')
        .where('created_at', '<=', cutoffs.eventsCreatedAtMs)
        .limit(maxRowsEach),
    )
    .execute()
  await db
    .deleteFrom('operations')
    .where('seq', 'in', (from) =>
      from
        .selectFrom('operations')
        .select('seq')
        .where('ended_at', '<=', cutoffs.operationsEndedAtMs)
        .limit(maxRowsEach),
    )
    .execute()
  await db
    .deleteFrom('sandboxes')
    .where('seq', 'in', (from) =>
      from
        .selectFrom('sandboxes')
        .select('seq')
        .where('deleted_at', '<=', cutoffs.sandboxesDeletedAtMs)
        .limit(maxRowsEach),
    )
    .execute()
}
