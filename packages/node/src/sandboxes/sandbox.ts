/** One sandbox of this node: the phase it is in, with what lives only in that phase. */
import type { GuestSession } from '../guest/index.ts'
import type { Machine } from '../machines/machine.ts'
import type { SandboxPaths } from './paths.ts'
import { type CommandDefaults, type SandboxFailure, type SandboxRecord, writeRecord } from './record.ts'

export type SandboxPhase =
  | { readonly kind: 'creating'; readonly done: Promise<void>; readonly abort: AbortController }
  | { readonly kind: 'running'; readonly machine: Machine; readonly session: GuestSession }
  /** It runs on without this node, which stops: nothing is recorded of it any more. */
  | { readonly kind: 'released' }
  | { readonly kind: 'failed'; readonly failure: SandboxFailure }
  | { readonly kind: 'deleting'; readonly done: Promise<void> }

export interface Sandbox {
  readonly id: string
  readonly paths: SandboxPaths
  /** As it stands in `sandbox.json`; undefined until it does. */
  record: SandboxRecord | undefined
  phase: SandboxPhase
  lastActiveAtMs: number
}

/** What processes need of a running sandbox. */
export interface RunningGuest {
  readonly session: GuestSession
  readonly defaults: CommandDefaults
}

/** The sandbox's guest while it runs. */
export function runningGuest(sandbox: Sandbox | undefined): RunningGuest | undefined {
  if (sandbox?.phase.kind !== 'running' || sandbox.record === undefined) return undefined
  return { session: sandbox.phase.session, defaults: sandbox.record.defaults }
}

/** Makes a record the sandbox's own, here and in its folder. */
export async function saveRecord(sandbox: Sandbox, record: SandboxRecord): Promise<void> {
  sandbox.record = record
  await writeRecord(sandbox.paths.record, record)
}
