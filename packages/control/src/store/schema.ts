/**
 * The tables. Times are Unix milliseconds, structures are JSON text, truth values are 0 and 1: what SQLite and
 * PostgreSQL both hold plainly. `seq` gives lists their order and cursors their meaning.
 */
import type { OperationKind, OperationState, ProcessState, SandboxState } from '@space/contract'
import type { NodeAsk } from '@space/core'
import type { Generated, Insertable, Selectable } from 'kysely'

export interface AccountsTable {
  id: string
  seq: Generated<number>
  name: string
  created_at: number
}

export interface TokensTable {
  id: string
  seq: Generated<number>
  account_id: string
  name: string
  /** SHA-256 of the whole bearer value, hexadecimal. */
  hash: string
  scopes: string
  expires_at: number | null
  revoked_at: number | null
  last_used_at: number | null
  created_at: number
}

export interface SandboxesTable {
  id: string
  seq: Generated<number>
  account_id: string
  /** Grows with every change of `state` and what it is made of; a write that expected another one is refused. */
  version: number
  state: SandboxState
  /** The state of core as JSON. */
  lifecycle: string
  /** When the sweep must look at it; null = only an event changes it. */
  due_at: number | null
  template_ref: string
  template_digest: string
  vcpus: number
  memory_mib: number
  disk_mib: number
  env: string
  metadata: string
  node: string | null
  environment: string | null
  last_error: string | null
  created_at: number
  started_at: number | null
  last_active_at: number | null
  expires_at: number | null
  deleted_at: number | null
}

export interface SandboxMetadataTable {
  sandbox_id: string
  key: string
  value: string
}

export interface OperationsTable {
  id: string
  seq: Generated<number>
  account_id: string
  sandbox_id: string
  kind: OperationKind
  state: OperationState
  created_at: number
  started_at: number | null
  ended_at: number | null
  error: string | null
  result: string | null
}

export interface EventsTable {
  seq: Generated<number>
  account_id: string
  sandbox_id: string
  kind: string
  data: string
  created_at: number
}

/** What a node must be asked; one row a sandbox: the last ask is the one that holds. */
export interface AsksTable {
  sandbox_id: string
  ask: NodeAsk
  /** Grows when the row is replaced, so that the end of an older ask does not remove a newer one. */
  generation: number
  attempts: number
  due_at: number
  lease_owner: string | null
  lease_until: number | null
}

export interface ProcessesTable {
  id: string
  seq: Generated<number>
  account_id: string
  sandbox_id: string
  state: ProcessState
  argv: string
  metadata: string
  pid: number | null
  exit_code: number | null
  signal: number | null
  timed_out: number
  reason: string | null
  errno: string | null
  created_at: number
  started_at: number | null
  exited_at: number | null
  output_bytes: number
  output_first_offset: number
  output_next_offset: number
}

export interface SessionsTable {
  id: string
  account_id: string
  /** The API token that made it: revoked, it takes its sessions along. */
  token_id: string
  sandbox_id: string
  process_id: string
  created_at: number
  attached_at: number | null
}

export interface RequestsTable {
  account_id: string
  key: string
  fingerprint: string
  /** 32 random bytes, hexadecimal: every id the request makes comes from them, so that doing it again makes the same. */
  seed: string
  /** The first answer as JSON, without tokens; null while there is none. */
  answer: string | null
  created_at: number
}

export interface Database {
  accounts: AccountsTable
  tokens: TokensTable
  sandboxes: SandboxesTable
  sandbox_metadata: SandboxMetadataTable
  operations: OperationsTable
  events: EventsTable
  asks: AsksTable
  processes: ProcessesTable
  sessions: SessionsTable
  requests: RequestsTable
}

export type AccountRow = Selectable<AccountsTable>
export type TokenRow = Selectable<TokensTable>
export type SandboxRow = Selectable<SandboxesTable>
export type NewSandboxRow = Insertable<SandboxesTable>
export type OperationRow = Selectable<OperationsTable>
export type AskRow = Selectable<AsksTable>
export type ProcessRow = Selectable<ProcessesTable>
export type NewProcessRow = Insertable<ProcessesTable>
export type SessionRow = Selectable<SessionsTable>
