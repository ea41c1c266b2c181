import type { Kysely } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import type { Database } from '../schema.ts'
import { firstTables } from './first-tables.ts'

/** All migrations by name; applied in the order of their names, each once, each whole or not at all. */
const migrations: Record<string, Migration> = { '0001_first_tables': firstTables }

/** Brings a database to the present schema; throws the reason when it cannot. */
export async function migrate(db: Kysely<Database>): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } })
  const { error } = await migrator.migrateToLatest()
  if (error !== undefined) throw error
}
