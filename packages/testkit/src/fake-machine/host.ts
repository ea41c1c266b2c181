import type { MachineExit, Shape } from '@space/node/machine'
import type { FakeVm } from './vm.ts'

/** What a test may break on the host. Each is taken once, by the next machine it fits, unless it is a number. */
export interface HostFaults {
  boot?: Error
  restore?: Error
  save?: Error
  /** The machine starts, its agent never answers. */
  stallBoot?: boolean
  /** How long boot and restore take. */
  bootMs?: number
  restoreMs?: number
}

/**
 * The host fake machines live on: what survives the end of a node service. A new driver on the same host finds the
 * machines an earlier one left, by their folders.
 */
export class FakeHost {
  readonly faults: HostFaults = {}
  readonly #machines = new Map<string, FakeVm>()
  #started = 0

  /** Machines that live now. */
  get machines(): readonly FakeVm[] {
    return [...this.#machines.values()]
  }

  /** How many were ever started. */
  get started(): number {
    return this.#started
  }

  /** The machine of a folder, for a test to look at, kill or stall. */
  machine(folder: string): FakeVm | undefined {
    return this.#machines.get(folder)
  }

  add(vm: FakeVm): void {
    this.#started += 1
    this.#machines.set(vm.folder, vm)
    void vm.exited.then((_exit: MachineExit) => {
      if (this.#machines.get(vm.folder) === vm) this.#machines.delete(vm.folder)
    })
  }

  /** Takes a fault that is meant for one machine. */
  take<K extends 'boot' | 'restore' | 'save' | 'stallBoot'>(fault: K): HostFaults[K] {
    const value = this.faults[fault]
    delete this.faults[fault]
    return value
  }

  /** Ends every machine: the end of a test. */
  async close(): Promise<void> {
    for (const vm of this.machines) vm.end({ reason: 'vmm_killed', detail: 'the fake host ends' })
    await Promise.all(this.machines.map((vm) => vm.exited))
  }
}

/** VMMs a driver keeps ahead, by shape: counted only. */
export function shapeKey({ vcpus, memoryMib }: Shape): string {
  return `${vcpus}x${memoryMib}`
}
