/** What a node says, in the words of control. Every field is taken with care: a node may be older or newer. */
import { errorBody, type ProcessState, PublicError } from '@space/contract'
import {
  type Environment,
  fromErrorDetail,
  type ObservedSandbox,
  ObservedSandbox_State,
  type Process,
  Process_State,
} from '@space/contract/node-link'
import type { Observation } from '@space/core'
import type { ObservedColumns } from '../operations/change.ts'
import type { NewProcessRow } from '../store/schema.ts'

/** The observation core decides on; undefined when the node says nothing control knows. */
export function toObservation(seen: ObservedSandbox, nowMs: number): Observation | undefined {
  switch (seen.state) {
    case ObservedSandbox_State.CREATING:
      return { state: 'creating' }
    case ObservedSandbox_State.RUNNING:
      return { state: 'running', startedAtMs: toMs(seen.startedAtUnixMs) ?? nowMs }
    case ObservedSandbox_State.FAILED:
      return { state: 'failed', error: errorBody(toError(seen)) }
    case ObservedSandbox_State.QUARANTINED:
      return { state: 'quarantined', error: errorBody(toError(seen)) }
    case ObservedSandbox_State.DELETED:
      return { state: 'absent' }
    default:
      return undefined
  }
}

/** The columns a node's word fills beside the state. */
export function observedColumns(seen: ObservedSandbox): ObservedColumns {
  const environment = toEnvironment(seen.environment)
  const activeAtMs = toMs(seen.lastActiveAtUnixMs) ?? toMs(seen.startedAtUnixMs)
  return {
    ...(environment === undefined ? {} : { environment }),
    ...(activeAtMs === undefined ? {} : { last_active_at: activeAtMs }),
  }
}

/** The environment as JSON of the public contract, or undefined when the node does not say. */
function toEnvironment(environment: Environment | undefined): string | undefined {
  if (!environment) return undefined
  const { id, machine, accelerator, kernel } = environment
  return JSON.stringify({ id, machine, accelerator, kernel })
}

/** A summary row from what the node says of a process. */
export function toProcessRow(process: Process, accountId: string): NewProcessRow {
  return {
    id: process.processId,
    account_id: accountId,
    sandbox_id: process.sandboxId,
    state: processStates[process.state] ?? 'created',
    argv: JSON.stringify(process.command?.argv ?? []),
    metadata: JSON.stringify(process.command?.metadata ?? {}),
    pid: process.pid === 0 ? null : process.pid,
    exit_code: process.exitCode ?? null,
    signal: process.signal ?? null,
    timed_out: process.timedOut ? 1 : 0,
    reason: process.reason === '' ? null : process.reason,
    errno: process.errno === '' ? null : process.errno,
    created_at: Number(process.createdAtUnixMs),
    started_at: toMs(process.startedAtUnixMs) ?? null,
    exited_at: toMs(process.exitedAtUnixMs) ?? null,
    output_bytes: Number(process.outputBytes),
    output_first_offset: Number(process.outputFirstOffset),
    output_next_offset: Number(process.outputNextOffset),
  }
}

/** Unix milliseconds of the wire, where 0 means none. */
function toMs(unixMs: bigint): number | undefined {
  return unixMs > 0n ? Number(unixMs) : undefined
}

function toError(seen: ObservedSandbox): PublicError {
  const message = seen.errorMessage === '' ? 'The sandbox failed on its node.' : seen.errorMessage
  return seen.error ? fromErrorDetail(seen.error, message) : new PublicError('internal', message)
}

const processStates: Partial<Record<number, ProcessState>> = {
  [Process_State.CREATED]: 'created',
  [Process_State.STARTING]: 'starting',
  [Process_State.RUNNING]: 'running',
  [Process_State.EXITED]: 'exited',
  [Process_State.FAILED_TO_START]: 'failed_to_start',
  [Process_State.LOST]: 'lost',
}
