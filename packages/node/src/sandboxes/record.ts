/**
 * `sandbox.json`: what a sandbox is, written before it is made, so that the next start of the node can adopt it, finish
 * it or clear it away.
 *
 *   creating ─▶ running ─▶ failed        any ─▶ deleting ─▶ (no folder)
 */
import { type ErrorCode, isErrorCode } from '@space/contract'
import { publishJson, readJson } from '../images/publish.ts'
import type { DiskChain, GuestImage } from '../machines/machine.ts'

export interface SandboxShape {
  readonly vcpus: number
  readonly memoryMib: number
  readonly diskMib: number
}

/** What a command gets that names nothing else. */
export interface CommandDefaults {
  readonly user: string
  readonly cwd: string
}

/** Why a sandbox failed, in words a client may read. */
export interface SandboxFailure {
  readonly code: ErrorCode
  readonly reason: string
  readonly message: string
}

export interface SandboxRecord {
  readonly version: 1
  readonly sandboxId: string
  readonly phase: 'creating' | 'running' | 'failed' | 'deleting'
  readonly templateDigest: string
  readonly shape: SandboxShape
  readonly env: Readonly<Record<string, string>>
  readonly defaults: CommandDefaults
  readonly disk: DiskChain
  readonly guestImage: GuestImage
  readonly createdAtMs: number
  /** 0 = it never ran. */
  readonly startedAtMs: number
  readonly failure?: SandboxFailure
}

/** Writes the record so that it is there whole, also after a loss of power. */
export async function writeRecord(path: string, record: SandboxRecord): Promise<void> {
  await publishJson(path, record)
}

/** Reads a record; undefined when there is none, or one this version did not write. */
export async function readRecord(path: string, sandboxId: string): Promise<SandboxRecord | undefined> {
  const value = await readJson(path)
  if (typeof value !== 'object' || value === null) return undefined
  const record = value as Partial<SandboxRecord>
  const whole =
    record.version === 1 &&
    record.sandboxId === sandboxId &&
    typeof record.phase === 'string' &&
    typeof record.shape === 'object' &&
    typeof record.disk === 'object' &&
    typeof record.guestImage === 'object' &&
    typeof record.env === 'object' &&
    typeof record.defaults === 'object' &&
    (record.failure === undefined || isErrorCode(record.failure.code))
  return whole ? (record as SandboxRecord) : undefined
}
