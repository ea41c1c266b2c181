import type { Kysely } from 'kysely'
import type { Database } from './schema.ts'

/** Where control keeps what it was told and what it promised. The queries over it are the same for every database. */
export interface Store {
  /** Committed state, for answers. */
  readonly read: Kysely<Database>
  /** Runs a unit in one transaction and resolves after its commit is durable; nothing of a unit that throws remains. */
  write<T>(unit: (db: Kysely<Database>) => Promise<T>): Promise<T>
  /** Whether other processes may hold leases in it at the same time. */
  readonly sharedByProcesses: boolean
  close(): Promise<void>
}
