import type { CgroupLimits } from '../../host/cgroups.ts'
import type { ProcessLimits } from '../../host/start.ts'
import type { Shape } from '../machine.ts'
import { translationCacheMib } from './argv.ts'
import type { QemuHost } from './host-setup.ts'

const mib = 2 ** 20

/** What QEMU itself may use besides guest memory: code, devices, block caches, thread stacks. */
const overheadMib = 192
/** Cores' worth of time besides the vCPUs: the I/O thread and the block workers. */
const ioCpus = 0.5
const tasks = 128

/**
 * Limits of a machine's control group. For a restored machine guest memory counts twice: writing a page of a private
 * mapping for the first time also fills the page of the memory file under it, which stays in RAM (a memfd) and is
 * charged to the first machine that touched it, though all machines of the snapshot share it.
 */
export function machineCgroup(
  host: Pick<QemuHost, 'environment'>,
  { vcpus, memoryMib }: Shape,
  restored: boolean,
): CgroupLimits {
  const translationMib = host.environment.accelerator === 'tcg' ? translationCacheMib : 0
  const guestMib = restored ? 2 * memoryMib : memoryMib
  return { memoryBytes: (guestMib + overheadMib + translationMib) * mib, cpus: vcpus + ioCpus, tasks }
}

/** Limits of the VMM process: no file beyond 64 GiB, which no disk of a sandbox reaches. */
export const processLimits: ProcessLimits = { fileBytes: 64 * 1024 * mib, openFiles: 256, threads: tasks }
