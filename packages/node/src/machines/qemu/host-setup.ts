/** What all machines of a driver share. */
import type { SlotPool } from '../../net/slot-pool.ts'
import type { Environment } from '../machine.ts'
import type { ExitWatch } from './exit-watch.ts'
import type { MemoryFiles } from './memory-files.ts'

export interface QemuHost {
  readonly program: string
  /** QEMU's own version, e.g. `7.2.22`. */
  readonly version: string
  readonly environment: Environment & { readonly accelerator: 'kvm' | 'tcg' }
  readonly cpuModel: string
  /** Rate of the host's time stamp counter; 0 when it was not measured. */
  readonly tscKhz: number
  readonly slots: SlotPool
  readonly watch: ExitWatch
  readonly memoryFiles: MemoryFiles
}
