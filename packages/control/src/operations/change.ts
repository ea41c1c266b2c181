/**
 * The one way a sandbox changes: an event goes through core, and its new state, the operations, the record of the event
 * and what the node must be asked are written together, inside the caller's transaction.
 */
import type { ErrorBody } from '@space/contract'
import {
  type Effect,
  type LifecycleLimits,
  nextDeadlineMs,
  type Phase,
  type SandboxEvent,
  type SandboxState,
  step,
} from '@space/core'
import type { Kysely } from 'kysely'
import { putAsk } from '../store/asks.ts'
import { beginOperation, endOperation, findOperation, insertOperation } from '../store/operations.ts'
import { endProcessesOfDeleted } from '../store/processes.ts'
import { updateSandbox } from '../store/sandboxes.ts'
import type { Database, NewSandboxRow, OperationRow, SandboxRow } from '../store/schema.ts'

export interface Change {
  readonly row: SandboxRow
  /** The operation this event opened, as it stands after it. */
  readonly opened: OperationRow | undefined
  /** Whether the node must be asked something because of it. */
  readonly asked: boolean
}

/** What a node said beside the state itself. */
export type ObservedColumns = Partial<
  Pick<NewSandboxRow, 'node' | 'environment' | 'last_active_at' | 'metadata' | 'expires_at'>
>

/** Puts an event through core and writes what follows; writes nothing when nothing follows. */
export async function changeSandbox(
  db: Kysely<Database>,
  before: SandboxRow,
  event: SandboxEvent,
  nowMs: number,
  limits: LifecycleLimits,
  observed: ObservedColumns = {},
): Promise<Change> {
  const state = readLifecycle(before.lifecycle)
  const next = step(state, event, nowMs, limits)
  let row = before
  if (next.state !== undefined && (next.state !== state || hasNews(before, observed)))
    row = await updateSandbox(db, before, {
      ...observed,
      ...lifecycleColumns(next.state, before),
    })
  const opened = await writeEffects(db, row, next.effects, nowMs)
  if (row.state !== before.state) await recordEvent(db, row, `sandbox.${row.state}`, nowMs)
  if (row.state === 'deleted' && before.state !== 'deleted') await endProcessesOfDeleted(db, row.id, nowMs)
  return { row, opened, asked: next.effects.some((effect) => effect.kind === 'ask_node') }
}

/** Writes operations and asks that follow from a step; answers the operation that was opened. */
export async function writeEffects(
  db: Kysely<Database>,
  row: Pick<SandboxRow, 'id' | 'account_id'>,
  effects: readonly Effect[],
  nowMs: number,
): Promise<OperationRow | undefined> {
  let opened: OperationRow | undefined
  for (const effect of effects) {
    switch (effect.kind) {
      case 'operation_opened':
        opened = await insertOperation(db, {
          id: effect.operationId,
          accountId: row.account_id,
          sandboxId: row.id,
          kind: effect.operation,
          createdAtMs: nowMs,
        })
        break
      case 'operation_begun':
        await beginOperation(db, effect.operationId, nowMs)
        break
      case 'operation_succeeded':
        await endOperation(db, effect.operationId, { sandboxIds: [row.id] }, nowMs)
        if (opened?.id === effect.operationId) opened = await findOperation(db, row.account_id, opened.id)
        break
      case 'operation_failed':
        await endOperation(db, effect.operationId, { error: effect.error }, nowMs)
        break
      case 'ask_node':
        await putAsk(db, row.id, effect.ask, nowMs)
        break
    }
  }
  return opened
}

/** Keeps that something happened to a sandbox, in the order it happened. */
export async function recordEvent(
  db: Kysely<Database>,
  row: Pick<SandboxRow, 'id' | 'account_id'>,
  kind: string,
  nowMs: number,
): Promise<void> {
  await db
    .insertInto('events')
    .values({ account_id: row.account_id, sandbox_id: row.id, kind, data: '{}', created_at: nowMs })
    .execute()
}

/** The columns that follow from a state of core. */
export function lifecycleColumns(state: SandboxState, before: Pick<SandboxRow, 'started_at'> | undefined) {
  const { phase } = state
  return {
    lifecycle: JSON.stringify(state),
    state: phase.kind,
    due_at: nextDeadlineMs(state) ?? null,
    expires_at: state.expiresAtMs ?? null,
    started_at: phase.kind === 'running' ? phase.startedAtMs : (before?.started_at ?? null),
    ...lastError(phase),
    ...(phase.kind === 'deleted' ? { deleted_at: phase.deletedAtMs, env: '{}' } : {}),
  }
}

/** The state of core as it was written by this file. */
export function readLifecycle(lifecycle: string): SandboxState {
  const { phase, expiresAtMs } = JSON.parse(lifecycle) as { phase: Phase; expiresAtMs?: number }
  return { phase, expiresAtMs }
}

function lastError(phase: Phase): { last_error?: string } {
  const error: ErrorBody | undefined =
    phase.kind === 'failed' || phase.kind === 'quarantined' ? phase.error : undefined
  return error ? { last_error: JSON.stringify(error) } : {}
}

function hasNews(before: SandboxRow, observed: ObservedColumns): boolean {
  return Object.entries(observed).some(([name, value]) => before[name as keyof ObservedColumns] !== value)
}
