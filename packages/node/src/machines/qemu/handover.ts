/**
 * Gives open files to a VMM that waits in `-preconfig`, where QEMU refuses its own commands for that (`add-fd`,
 * `getfd`). Descriptors that arrive with any command on the control socket are kept by QEMU until the next ones arrive;
 * until then their numbers, found in /proc by inode, are paths in /proc/self/fd for it to open.
 */
import { fchmodSync, fchownSync, fstatSync, readdirSync, statSync } from 'node:fs'
import type { Descriptor } from '../../host/descriptors.ts'
import { MachineError } from '../machine-error.ts'
import type { Vmm } from './vmm.ts'

/** Most descriptors QEMU takes with one message. */
export const maxAtOnce = 16

/**
 * Hands descriptors over and answers, for each, the path under which the VMM can open it until the next call. A file
 * that is only read must be readable by all, one that is written must belong to the VMM's uid: see `letRead`, `letWrite`.
 */
export async function handOver(vmm: Vmm, files: readonly Descriptor[]): Promise<string[]> {
  if (files.length > maxAtOnce) throw new MachineError('no_capacity', `${files.length} files at once`)
  await vmm.explained(vmm.qmp.execute('query-status', {}, { descriptors: files.map(({ fd }) => fd) }))
  const numbers = descriptorsByInode(vmm.pid)
  return files.map(({ fd }) => {
    const number = numbers.get(inodeKey(fstatSync(fd)))
    if (number === undefined) throw new MachineError('vmm_protocol', 'the VMM did not take a descriptor')
    return `/proc/self/fd/${number}`
  })
}

/** The number a process has a file under, by inode, or undefined. */
export function numberIn(pid: number, file: Descriptor): number | undefined {
  return descriptorsByInode(pid).get(inodeKey(fstatSync(file.fd)))
}

function descriptorsByInode(pid: number): Map<string, number> {
  const folder = `/proc/${pid}/fd`
  const result = new Map<string, number>()
  for (const name of readdirSync(folder)) {
    const info = statSync(`${folder}/${name}`, { throwIfNoEntry: false })
    if (info !== undefined) result.set(inodeKey(info), Number(name))
  }
  return result
}

function inodeKey({ dev, ino }: { dev: number; ino: number }): string {
  return `${dev}:${ino}`
}

/** Lets any uid that was given this descriptor open the file again for reading. Its folders keep all others out. */
export function letRead(file: Descriptor): Descriptor {
  const { mode } = fstatSync(file.fd)
  if ((mode & 0o444) !== 0o444) fchmodSync(file.fd, (mode & 0o777) | 0o444)
  return file
}

/** Makes a file the VMM's own: mode 0600. Its folders keep the VMM from finding it by name. */
export function letWrite(file: Descriptor, uid: number): Descriptor {
  fchmodSync(file.fd, 0o600)
  fchownSync(file.fd, uid, uid)
  return file
}

/** Takes a file back from a VMM: root's, read-only for everybody, for good. */
export function takeBack(file: Descriptor): void {
  fchownSync(file.fd, 0, 0)
  fchmodSync(file.fd, 0o444)
}
