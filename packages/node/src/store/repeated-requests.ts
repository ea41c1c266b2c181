/** Which process a request with an Idempotency-Key made, so that the same key gives the same answer again. */
import type { DatabaseSync, StatementSync } from 'node:sqlite'

export interface RepeatedRequest {
  readonly requestHash: string
  readonly processId: string
}

export class RepeatedRequests {
  readonly #get: StatementSync
  readonly #insert: StatementSync
  readonly #expire: StatementSync

  constructor(database: DatabaseSync) {
    this.#get = database.prepare(
      'SELECT request_hash, process_id FROM repeated_requests WHERE account_id = ? AND key = ?',
    )
    this.#insert = database.prepare(
      `INSERT INTO repeated_requests (account_id, key, request_hash, process_id, created_at_ms) VALUES (?, ?, ?, ?, ?)`,
    )
    this.#expire = database.prepare('DELETE FROM repeated_requests WHERE created_at_ms < ?')
  }

  get(accountId: string, key: string): RepeatedRequest | undefined {
    const row = this.#get.get(accountId, key)
    if (row === undefined) return undefined
    return { requestHash: String(row['request_hash']), processId: String(row['process_id']) }
  }

  insert(accountId: string, key: string, request: RepeatedRequest, nowMs: number): void {
    this.#insert.run(accountId, key, request.requestHash, request.processId, nowMs)
  }

  expire(createdBeforeMs: number): void {
    this.#expire.run(createdBeforeMs)
  }
}
