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

/** Limits of a machine's control group. */
export function machineCgroup(
  host: Pick<QemuHost, 'environment'>,
  { vcpus, memoryMib }: Shape,
): CgroupLimits {
  const translationMib = host.environment.accelerator === 'tcg' ? translationCacheMib : 0
  return { memoryBytes: (memoryMib + overheadMib + translationMib) * mib, cpus: vcpus + ioCpus, tasks }
}

/** Limits of the VMM process: no file beyond 64 GiB, which no disk of a sandbox reaches. */
export const processLimits: ProcessLimits = { fileBytes: 64 * 1024 * mib, openFiles: 256, threads: tasks }
