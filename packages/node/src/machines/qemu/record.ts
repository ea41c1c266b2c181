/**
 * What a machine has on the host, as its folder says it. Written before the thing is made, so that `clear` finds
 * everything after a crash at any line: first the slot, then the process, then that the machine is complete.
 * The file is read by the node alone; the VMM has no access to the folder.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { errorCode } from '../../host/host-error.ts'
import type { ProcessIdentity } from '../../host/pidfd.ts'
import type { Slot } from '../../net/slot.ts'
import type { Shape } from '../machine.ts'

export interface MachineRecord {
  readonly version: 1
  readonly driver: 'qemu'
  /** `starting`: being made or waiting for a claim; `running`: handed out, may be adopted. */
  readonly stage: 'starting' | 'running'
  readonly slot: Slot
  readonly shape: Shape
  readonly vmmVersion: string
  readonly process?: ProcessIdentity
  readonly memory?: MemoryRecord
  /** Block node the root drive writes to; it changes with every layer that is frozen. */
  readonly activeNode?: string
}

export interface MemoryRecord {
  /** Number of the sealed memory file among the VMM's descriptors. */
  readonly vmmFd: number
  /** File the memory came from; '' for a machine that was booted. */
  readonly source: string
}

const fileName = 'machine.json'

/** Puts the record into the folder, replacing the earlier one in one step. */
export function writeRecord(folder: string, record: MachineRecord): void {
  const draft = join(folder, `.${fileName}`)
  writeFileSync(draft, JSON.stringify(record), { mode: 0o600 })
  renameSync(draft, join(folder, fileName))
}

/** Moves the record to another folder. */
export function moveRecord(from: string, to: string): void {
  renameSync(join(from, fileName), join(to, fileName))
}

/** Removes the record; fine when there is none. */
export function removeRecord(folder: string): void {
  rmSync(join(folder, `.${fileName}`), { force: true })
  rmSync(join(folder, fileName), { force: true })
}

/** The record of a folder, or undefined when there is none. */
export function readRecord(folder: string): MachineRecord | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(join(folder, fileName), 'utf8'))
    return isRecord(value) ? value : undefined
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return undefined
    throw error
  }
}

function isRecord(value: unknown): value is MachineRecord {
  if (typeof value !== 'object' || value === null) return false
  const { version, driver } = value as Partial<Record<keyof MachineRecord, unknown>>
  return version === 1 && driver === 'qemu'
}
