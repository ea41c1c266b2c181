/** Kysely over `node:sqlite`: its SQLite compiler and driver, given the shape of database they ask for. */
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { type Dialect, SqliteAdapter, type SqliteDatabase, SqliteDialect, type SqliteStatement } from 'kysely'

const maxCachedStatements = 256

/** A dialect over an open database; destroying its Kysely closes the database. */
export function sqliteDialect(database: DatabaseSync): Dialect {
  const dialect = new SqliteDialect({ database: withStatementCache(database) })
  return {
    createDriver: () => dialect.createDriver(),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createAdapter: () => new TransactionalDdlAdapter(),
  }
}

/** SQLite rolls schema changes back like any other, which lets a failed migration leave nothing behind. */
class TransactionalDdlAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true
  }
}

/** Opens a database file in the mode control relies on: a commit is on disk when it returns. */
export function openDatabase(path: string, options: { readonly readOnly: boolean }): DatabaseSync {
  const database = new DatabaseSync(path, {
    readOnly: options.readOnly,
    timeout: 5000,
    enableForeignKeyConstraints: true,
  })
  if (!options.readOnly) database.exec('pragma journal_mode = wal')
  database.exec('pragma synchronous = full')
  return database
}

function withStatementCache(database: DatabaseSync): SqliteDatabase {
  const cache = new Map<string, SqliteStatement>()
  return {
    close: () => database.close(),
    prepare: (sql) => {
      const cached = cache.get(sql)
      if (cached) {
        cache.delete(sql)
        cache.set(sql, cached)
        return cached
      }
      const statement = adapt(database.prepare(sql))
      cache.set(sql, statement)
      const [oldest] = cache.keys()
      if (cache.size > maxCachedStatements && oldest !== undefined) cache.delete(oldest)
      return statement
    },
  }
}

function adapt(statement: StatementSync): SqliteStatement {
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...parameters.map(bindable)),
    run: (parameters) => statement.run(...parameters.map(bindable)),
    iterate: (parameters) => statement.iterate(...parameters.map(bindable)),
  }
}

function bindable(value: unknown): SQLInputValue {
  if (value === undefined || value === null) return null
  if (typeof value === 'boolean') return value ? 1 : 0
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint') return value
  if (value instanceof Uint8Array) return value
  throw new TypeError(`a ${typeof value} cannot be stored: convert it to text or a number first`)
}
