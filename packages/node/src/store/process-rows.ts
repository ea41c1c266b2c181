/** Rows of processes: what the node knows of each beside its journal. */
import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite'
import type { ExitReason } from '@space/contract'

export interface ProcessCommand {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly user: string
  readonly stdinPipe: boolean
  readonly pty: { readonly cols: number; readonly rows: number } | undefined
  /** 0 = none. */
  readonly timeoutMs: number
  readonly keepAwake: boolean
  readonly metadata: Readonly<Record<string, string>>
}

export type ProcessRowState = 'created' | 'starting' | 'running' | 'exited' | 'failed_to_start' | 'lost'

export interface ProcessExit {
  readonly state: 'exited' | 'failed_to_start' | 'lost'
  readonly exitCode: number | undefined
  readonly signal: number | undefined
  readonly timedOut: boolean
  readonly reason: ExitReason
  /** '' when there is none. */
  readonly errno: string
  readonly exitedAtMs: number
}

export interface ProcessRow {
  readonly sequence: number
  readonly processId: string
  readonly sandboxId: string
  readonly sessionId: string
  readonly command: ProcessCommand
  readonly state: ProcessRowState
  readonly pid: number
  readonly createdAtMs: number
  /** 0 = not yet. */
  readonly startedAtMs: number
  readonly exit: ProcessExit | undefined
  /** Of the output kept, as of the exit. */
  readonly firstOffset: number
  readonly nextOffset: number
}

export interface NewProcess {
  readonly processId: string
  readonly sandboxId: string
  readonly sessionId: string
  readonly command: ProcessCommand
  readonly createdAtMs: number
}

export class ProcessRows {
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  insert(process: NewProcess): void {
    this.#run(
      `INSERT INTO processes (process_id, sandbox_id, session_id, command, state, created_at_ms)
       VALUES (?, ?, ?, ?, 'created', ?)`,
      process.processId,
      process.sandboxId,
      process.sessionId,
      JSON.stringify(process.command),
      process.createdAtMs,
    )
  }

  get(processId: string): ProcessRow | undefined {
    const row = this.#prepare('SELECT * FROM processes WHERE process_id = ?').get(processId)
    return row === undefined ? undefined : toRow(row)
  }

  /** Newest first, older than `beforeSequence`. */
  list(sandboxId: string, beforeSequence: number, limit: number): ProcessRow[] {
    const sql = 'SELECT * FROM processes WHERE sandbox_id = ? AND sequence < ? ORDER BY sequence DESC LIMIT ?'
    return this.#prepare(sql).all(sandboxId, beforeSequence, limit).map(toRow)
  }

  /** Those of a sandbox that were started and have no exit yet, or were never started. */
  unended(sandboxId: string): ProcessRow[] {
    const sql = 'SELECT * FROM processes WHERE sandbox_id = ? AND exited_at_ms = 0'
    return this.#prepare(sql).all(sandboxId).map(toRow)
  }

  countUnended(sandboxId: string): number {
    const sql = 'SELECT count(*) AS n FROM processes WHERE sandbox_id = ? AND exited_at_ms = 0'
    return Number(this.#prepare(sql).get(sandboxId)?.['n'] ?? 0)
  }

  /** Those nobody attached to since before. */
  unattached(createdBeforeMs: number, limit: number): ProcessRow[] {
    const sql = `SELECT * FROM processes WHERE state = 'created' AND created_at_ms < ? LIMIT ?`
    return this.#prepare(sql).all(createdBeforeMs, limit).map(toRow)
  }

  /** Those that exited before. */
  exitedBefore(exitedBeforeMs: number, limit: number): ProcessRow[] {
    const sql = `SELECT * FROM processes WHERE exited_at_ms > 0 AND exited_at_ms < ? LIMIT ?`
    return this.#prepare(sql).all(exitedBeforeMs, limit).map(toRow)
  }

  /** True when it was `created`: the caller is the one who starts it. */
  claimStart(processId: string): boolean {
    const sql = `UPDATE processes SET state = 'starting' WHERE process_id = ? AND state = 'created'`
    return this.#run(sql, processId) === 1
  }

  started(processId: string, pid: number, startedAtMs: number): void {
    const sql = `UPDATE processes SET state = 'running', pid = ?, started_at_ms = ? WHERE process_id = ? AND state = 'starting'`
    this.#run(sql, pid, startedAtMs, processId)
  }

  /** Records the exit once: the first one stands. */
  ended(processId: string, exit: ProcessExit, output: { firstOffset: number; nextOffset: number }): void {
    this.#run(
      `UPDATE processes SET state = ?, exit_code = ?, signal = ?, timed_out = ?, reason = ?, errno = ?,
       exited_at_ms = ?, first_offset = ?, next_offset = ? WHERE process_id = ? AND exited_at_ms = 0`,
      exit.state,
      exit.exitCode ?? null,
      exit.signal ?? null,
      exit.timedOut ? 1 : 0,
      exit.reason,
      exit.errno,
      exit.exitedAtMs,
      output.firstOffset,
      output.nextOffset,
      processId,
    )
  }

  delete(processId: string): void {
    this.#run('DELETE FROM processes WHERE process_id = ?', processId)
  }

  deleteSandbox(sandboxId: string): void {
    const repeated =
      'DELETE FROM repeated_requests WHERE process_id IN (SELECT process_id FROM processes WHERE sandbox_id = ?)'
    this.#run(repeated, sandboxId)
    this.#run('DELETE FROM processes WHERE sandbox_id = ?', sandboxId)
  }

  #run(sql: string, ...values: (string | number | null)[]): number {
    return Number(this.#prepare(sql).run(...values).changes)
  }

  #prepare(sql: string): StatementSync {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    const statement = this.#database.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }
}

function toRow(row: Record<string, SQLOutputValue>): ProcessRow {
  const exitedAtMs = Number(row['exited_at_ms'])
  return {
    sequence: Number(row['sequence']),
    processId: String(row['process_id']),
    sandboxId: String(row['sandbox_id']),
    sessionId: String(row['session_id']),
    command: JSON.parse(String(row['command'])) as ProcessCommand,
    state: String(row['state']) as ProcessRowState,
    pid: Number(row['pid']),
    createdAtMs: Number(row['created_at_ms']),
    startedAtMs: Number(row['started_at_ms']),
    exit: exitedAtMs === 0 ? undefined : toExit(row, exitedAtMs),
    firstOffset: Number(row['first_offset']),
    nextOffset: Number(row['next_offset']),
  }
}

function toExit(row: Record<string, SQLOutputValue>, exitedAtMs: number): ProcessExit {
  return {
    state: String(row['state']) as ProcessExit['state'],
    exitCode: row['exit_code'] === null ? undefined : Number(row['exit_code']),
    signal: row['signal'] === null ? undefined : Number(row['signal']),
    timedOut: row['timed_out'] === 1,
    reason: String(row['reason']) as ExitReason,
    errno: String(row['errno']),
    exitedAtMs,
  }
}
