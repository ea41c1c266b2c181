import { existsSync } from 'node:fs'
import type { ControllerMount } from '../host/cgroups.ts'
import { groupFolders, groupMembers, makeGroup, removeGroup } from '../host/cgroups.ts'
import { errorCode } from '../host/host-error.ts'
import { HeldProcess } from '../host/pidfd.ts'
import { processesOf } from '../host/procfs.ts'
import { type UidRange, uidOf } from '../host/uids.ts'
import { makeNamespace, namespacePath, removeNamespace } from './namespace.ts'

/** What a machine has on the host besides its processes and files, made ahead. Plain data: it goes into its record. */
export interface Slot {
  readonly number: number
  readonly token: string
  readonly uid: number
  /** Name of the network namespace. */
  readonly namespace: string
  /** Name of the control group, and its folder in each hierarchy. */
  readonly group: string
  readonly groupFolders: readonly string[]
}

/** The slot of a number: everything follows from it. */
export function describeSlot(
  number: number,
  token: string,
  range: UidRange,
  mounts: readonly ControllerMount[],
): Slot {
  const name = String(number)
  return {
    number,
    token,
    uid: uidOf(range, number),
    namespace: `space-${name}`,
    group: name,
    groupFolders: groupFolders(mounts, name),
  }
}

/**
 * Makes the control group of a slot. False when there is one already: another SPACE with a /run of its own (in a
 * chroot, say) has the number, since control groups are the kernel's and not the folder tree's.
 */
export function reserveOnKernel(mounts: readonly ControllerMount[], name: string): boolean {
  if (existsSync(namespacePath(`space-${name}`))) return false
  try {
    makeGroup(mounts, name)
    return true
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false
    throw error
  }
}

/** Makes what is slow about a slot: its network namespace. */
export async function makeSlot(slot: Slot, signal?: AbortSignal): Promise<void> {
  await makeNamespace(slot.namespace, signal)
}

/** Ends every process of the slot and removes it from the host. Fine when part of it is gone. */
export async function removeSlot(slot: Slot): Promise<void> {
  await killAll(slot)
  await Promise.all([removeNamespace(slot.namespace), removeGroup(slot.groupFolders)])
}

/** By group and by uid: a process that was just started may not have reached its group. */
async function killAll(slot: Slot): Promise<void> {
  const pids = new Set([...(await groupMembers(slot.groupFolders)), ...(await processesOf(slot.uid))])
  for (const pid of pids) {
    using held = HeldProcess.open(pid)
    held?.signal('SIGKILL')
  }
}
