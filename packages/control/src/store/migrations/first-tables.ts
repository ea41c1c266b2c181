import type { ColumnDefinitionBuilder, Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** The tables of `schema.ts` as they began. */
export const firstTables: Migration = { up }

const required = (column: ColumnDefinitionBuilder) => column.notNull()

async function up(db: Kysely<unknown>): Promise<void> {
  await listed(db, 'accounts')
    .addColumn('name', 'text', (column) => column.notNull().unique())
    .addColumn('created_at', 'bigint', required)
    .execute()
  await listed(db, 'tokens')
    .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id'))
    .addColumn('name', 'text', required)
    .addColumn('hash', 'text', required)
    .addColumn('scopes', 'text', required)
    .addColumn('expires_at', 'bigint')
    .addColumn('revoked_at', 'bigint')
    .addColumn('last_used_at', 'bigint')
    .addColumn('created_at', 'bigint', required)
    .execute()
  await index(db, 'tokens', ['account_id', 'seq'])
  await sandboxes(db)
  await work(db)
  await processes(db)
}

async function sandboxes(db: Kysely<unknown>): Promise<void> {
  await listed(db, 'sandboxes')
    .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id'))
    .addColumn('version', 'bigint', required)
    .addColumn('state', 'text', required)
    .addColumn('lifecycle', 'text', required)
    .addColumn('due_at', 'bigint')
    .addColumn('template_ref', 'text', required)
    .addColumn('template_digest', 'text', required)
    .addColumn('vcpus', 'integer', required)
    .addColumn('memory_mib', 'integer', required)
    .addColumn('disk_mib', 'integer', required)
    .addColumn('env', 'text', required)
    .addColumn('metadata', 'text', required)
    .addColumn('node', 'text')
    .addColumn('environment', 'text')
    .addColumn('last_error', 'text')
    .addColumn('created_at', 'bigint', required)
    .addColumn('started_at', 'bigint')
    .addColumn('last_active_at', 'bigint')
    .addColumn('expires_at', 'bigint')
    .addColumn('deleted_at', 'bigint')
    .execute()
  await index(db, 'sandboxes', ['account_id', 'seq'])
  await index(db, 'sandboxes', ['state', 'account_id', 'seq'])
  await index(db, 'sandboxes', ['due_at'])
  await index(db, 'sandboxes', ['deleted_at'])
  await db.schema
    .createTable('sandbox_metadata')
    .addColumn('sandbox_id', 'text', (column) =>
      column.notNull().references('sandboxes.id').onDelete('cascade'),
    )
    .addColumn('key', 'text', required)
    .addColumn('value', 'text', required)
    .addPrimaryKeyConstraint('sandbox_metadata_primary', ['sandbox_id', 'key'])
    .execute()
  await index(db, 'sandbox_metadata', ['key', 'value'])
}

async function work(db: Kysely<unknown>): Promise<void> {
  await listed(db, 'operations')
    .addColumn('account_id', 'text', required)
    .addColumn('sandbox_id', 'text', required)
    .addColumn('kind', 'text', required)
    .addColumn('state', 'text', required)
    .addColumn('created_at', 'bigint', required)
    .addColumn('started_at', 'bigint')
    .addColumn('ended_at', 'bigint')
    .addColumn('error', 'text')
    .addColumn('result', 'text')
    .execute()
  await index(db, 'operations', ['account_id', 'seq'])
  await index(db, 'operations', ['sandbox_id', 'seq'])
  await index(db, 'operations', ['ended_at'])
  await db.schema
    .createTable('events')
    .addColumn('seq', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('account_id', 'text', required)
    .addColumn('sandbox_id', 'text', required)
    .addColumn('kind', 'text', required)
    .addColumn('data', 'text', required)
    .addColumn('created_at', 'bigint', required)
    .execute()
  await index(db, 'events', ['created_at'])
  await db.schema
    .createTable('asks')
    .addColumn('sandbox_id', 'text', (column) =>
      column.primaryKey().references('sandboxes.id').onDelete('cascade'),
    )
    .addColumn('ask', 'text', required)
    .addColumn('generation', 'bigint', required)
    .addColumn('attempts', 'integer', required)
    .addColumn('due_at', 'bigint', required)
    .addColumn('lease_owner', 'text')
    .addColumn('lease_until', 'bigint')
    .execute()
  await index(db, 'asks', ['due_at'])
  await db.schema
    .createTable('requests')
    .addColumn('account_id', 'text', required)
    .addColumn('key', 'text', required)
    .addColumn('fingerprint', 'text', required)
    .addColumn('seed', 'text', required)
    .addColumn('answer', 'text')
    .addColumn('created_at', 'bigint', required)
    .addPrimaryKeyConstraint('requests_primary', ['account_id', 'key'])
    .execute()
  await index(db, 'requests', ['created_at'])
}

async function processes(db: Kysely<unknown>): Promise<void> {
  await listed(db, 'processes')
    .addColumn('account_id', 'text', required)
    .addColumn('sandbox_id', 'text', (column) =>
      column.notNull().references('sandboxes.id').onDelete('cascade'),
    )
    .addColumn('state', 'text', required)
    .addColumn('argv', 'text', required)
    .addColumn('metadata', 'text', required)
    .addColumn('pid', 'integer')
    .addColumn('exit_code', 'integer')
    .addColumn('signal', 'integer')
    .addColumn('timed_out', 'integer', required)
    .addColumn('reason', 'text')
    .addColumn('errno', 'text')
    .addColumn('created_at', 'bigint', required)
    .addColumn('started_at', 'bigint')
    .addColumn('exited_at', 'bigint')
    .addColumn('output_bytes', 'bigint', required)
    .addColumn('output_first_offset', 'bigint', required)
    .addColumn('output_next_offset', 'bigint', required)
    .execute()
  await index(db, 'processes', ['sandbox_id', 'seq'])
  await db.schema
    .createTable('sessions')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('account_id', 'text', required)
    .addColumn('token_id', 'text', required)
    .addColumn('sandbox_id', 'text', (column) =>
      column.notNull().references('sandboxes.id').onDelete('cascade'),
    )
    .addColumn('process_id', 'text', required)
    .addColumn('created_at', 'bigint', required)
    .addColumn('attached_at', 'bigint')
    .execute()
  await index(db, 'sessions', ['sandbox_id'])
}

/** A table whose rows are listed: `seq` orders them, `id` names them. */
function listed(db: Kysely<unknown>, name: string) {
  return db.schema
    .createTable(name)
    .addColumn('seq', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('id', 'text', (column) => column.notNull().unique())
}

async function index(db: Kysely<unknown>, table: string, columns: readonly string[]): Promise<void> {
  await db.schema
    .createIndex(`${table}_by_${columns.join('_')}`)
    .on(table)
    .columns([...columns])
    .execute()
}
