/**
 * The node's own database: processes and the keys of repeated requests. A sandbox's rows go with it.
 *
 * WAL with `synchronous = NORMAL`: what is committed survives the death of every process here. A loss of power takes
 * the machines too, and with them what these rows speak of.
 */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

const schemaVersion = 1

const schema = `
  CREATE TABLE processes (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    process_id TEXT NOT NULL UNIQUE,
    sandbox_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    command TEXT NOT NULL,
    state TEXT NOT NULL,
    pid INTEGER NOT NULL DEFAULT 0,
    exit_code INTEGER,
    signal INTEGER,
    timed_out INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT '',
    errno TEXT NOT NULL DEFAULT '',
    created_at_ms INTEGER NOT NULL,
    started_at_ms INTEGER NOT NULL DEFAULT 0,
    exited_at_ms INTEGER NOT NULL DEFAULT 0,
    first_offset INTEGER NOT NULL DEFAULT 0,
    next_offset INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX processes_by_sandbox ON processes (sandbox_id, sequence);
  CREATE INDEX processes_unended ON processes (sandbox_id) WHERE exited_at_ms = 0;
  CREATE INDEX processes_unattached ON processes (created_at_ms) WHERE state = 'created';
  CREATE INDEX processes_by_exit ON processes (exited_at_ms);
  CREATE TABLE repeated_requests (
    account_id TEXT NOT NULL,
    key TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    process_id TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (account_id, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX repeated_requests_by_age ON repeated_requests (created_at_ms);
`

/** Opens the database and brings it to this version's schema. Throws when a newer version wrote it. */
export function openDatabase(path: string): DatabaseSync {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const database = new DatabaseSync(path, { timeout: 5000 })
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;')
  const version = Number(database.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0)
  if (version > schemaVersion) {
    database.close()
    throw new RangeError(
      `${path} was written by a newer version of SPACE (schema ${version}, known ${schemaVersion})`,
    )
  }
  if (version < schemaVersion)
    database.exec(`BEGIN; ${schema} PRAGMA user_version = ${schemaVersion}; COMMIT;`)
  return database
}
