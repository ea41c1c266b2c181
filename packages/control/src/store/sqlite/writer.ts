/**
 * All writes of a SQLite store, one transaction at a time. Units that wait together are committed together: each runs
 * in a savepoint of its own, so that a failing one takes nothing else with it, and nobody hears of success before the
 * one commit of all is on disk. Between two batches the event loop gets its turn.
 */
import type { DatabaseSync } from 'node:sqlite'
import { PublicError } from '@space/contract'
import type { Kysely } from 'kysely'
import type { Database } from '../schema.ts'

const maxBatchUnits = 8
const maxWaitingUnits = 4096

interface Unit {
  readonly run: (db: Kysely<Database>) => Promise<unknown>
  readonly resolve: (value: unknown) => void
  readonly reject: (reason: unknown) => void
}

export class SqliteWriter {
  readonly #database: DatabaseSync
  readonly #db: Kysely<Database>
  readonly #waiting: Unit[] = []
  #running: Promise<void> | undefined
  #closed = false

  constructor(database: DatabaseSync, db: Kysely<Database>) {
    this.#database = database
    this.#db = db
  }

  /** Runs a unit in a transaction; resolves after the commit. The unit must await nothing but its own statements. */
  write<T>(run: (db: Kysely<Database>) => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(unavailable('The server is stopping: try again.'))
    if (this.#waiting.length >= maxWaitingUnits)
      return Promise.reject(unavailable('Too many changes are waiting to be stored: try again.'))
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#waiting.push({ run, resolve: resolve as (value: unknown) => void, reject })
    this.#running ??= this.#drain()
    return promise
  }

  /** Refuses new units and resolves when those that wait are committed. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#running
  }

  async #drain(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        // The turn of the event loop lets reads in, and lets writes that arrive together share a commit.
        await new Promise((resolve) => setImmediate(resolve))
        await this.#commit(this.#waiting.splice(0, maxBatchUnits))
      }
    } finally {
      this.#running = undefined
    }
  }

  async #commit(units: readonly Unit[]): Promise<void> {
    const done: (() => void)[] = []
    try {
      this.#database.exec('begin immediate')
      for (const unit of units) done.push(await this.#runInSavepoint(unit))
      this.#database.exec('commit')
    } catch (cause) {
      if (this.#database.isTransaction) this.#database.exec('rollback')
      for (const unit of units) unit.reject(cause)
      return
    }
    for (const settle of done) settle()
  }

  async #runInSavepoint(unit: Unit): Promise<() => void> {
    this.#database.exec('savepoint unit')
    try {
      const value = await unit.run(this.#db)
      this.#database.exec('release unit')
      return () => unit.resolve(value)
    } catch (reason) {
      this.#database.exec('rollback to unit')
      this.#database.exec('release unit')
      return () => unit.reject(reason)
    }
  }
}

function unavailable(message: string): PublicError {
  return new PublicError('service_unavailable', message, { details: { reason: 'store_busy' } })
}
