import { chmodSync } from 'node:fs'
import { Kysely } from 'kysely'
import { migrate } from '../migrations/migrate.ts'
import type { Database } from '../schema.ts'
import type { Store } from '../store.ts'
import { openDatabase, sqliteDialect } from './dialect.ts'
import { SqliteWriter } from './writer.ts'

/** Opens the SQLite store, made and migrated as needed; the file is readable by its owner alone. */
export async function openSqliteStore(path: string): Promise<Store> {
  const writable = openDatabase(path, { readOnly: false })
  chmodSync(path, 0o600)
  const writing = new Kysely<Database>({ dialect: sqliteDialect(writable) })
  await migrate(writing)
  const reading = new Kysely<Database>({ dialect: sqliteDialect(openDatabase(path, { readOnly: true })) })
  const writer = new SqliteWriter(writable, writing)
  return {
    read: reading,
    write: (unit) => writer.write(unit),
    sharedByProcesses: false,
    async close() {
      await writer.close()
      await reading.destroy()
      await writing.destroy()
    },
  }
}
