/** A running QEMU as the node's Machine. */
import { fchownSync, fstatSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { allocatedBytes } from '../../disks/chain.ts'
import { openToRead } from '../../host/descriptors.ts'
import { errorCode, HostError } from '../../host/host-error.ts'
import { printable } from '../../host/printable.ts'
import { proportionalBytes, readStat, ticksPerSecond } from '../../host/procfs.ts'
import { dialIn } from '../../host/unix-sockets.ts'
import type {
  DiskChain,
  Environment,
  Machine,
  MachineExit,
  MachineExitReason,
  MachineSnapshot,
  MachineUsage,
  SaveTarget,
} from '../machine.ts'
import { MachineError } from '../machine-error.ts'
import { rootNode } from './block-nodes.ts'
import { removeMachineFiles } from './folder.ts'
import type { QemuHost } from './host-setup.ts'
import { identityOf } from './identity.ts'
import { sockets } from './launch.ts'
import type { QmpEvent } from './qmp.ts'
import { type MachineRecord, writeRecord } from './record.ts'
import { saveMachine } from './save.ts'
import { lastWords, type Vmm, type VmmEnd } from './vmm.ts'

/** How long a dial of the guest channel may find QEMU busy with an earlier connection. */
const dialMs = 2_000
/** The guest's last words that are kept when it panics. */
const consoleBytes = 8 << 10

export interface QemuMachineParts {
  readonly host: QemuHost
  readonly folder: string
  readonly record: MachineRecord
  readonly vmm: Vmm
  readonly disk: DiskChain
  readonly guestImageDigest: string
}

export class QemuMachine implements Machine {
  readonly folder: string
  readonly environment: Environment
  readonly exited: Promise<MachineExit>
  readonly #host: QemuHost
  readonly #vmm: Vmm
  readonly #guestImageDigest: string
  #record: MachineRecord
  #disk: DiskChain
  #channel: Socket | undefined
  #why: MachineExit | undefined
  #life: 'held' | 'saving' | 'ending' | 'released' = 'held'

  constructor(parts: QemuMachineParts) {
    this.folder = parts.folder
    this.environment = parts.host.environment
    this.#host = parts.host
    this.#vmm = parts.vmm
    this.#record = parts.record
    this.#disk = parts.disk
    this.#guestImageDigest = parts.guestImageDigest
    this.#vmm.qmp.onEvent((event) => void this.#onEvent(event))
    this.exited = this.#vmm.ended.then((end) => this.#afterEnd(end))
  }

  async pause(): Promise<void> {
    await this.#command('stop')
  }

  async resume(): Promise<void> {
    await this.#command('cont')
  }

  async save(into: SaveTarget): Promise<{ snapshot: MachineSnapshot; disk: DiskChain; stoppedMs: number }> {
    if (this.#life !== 'held') throw new MachineError('machine_closed', `save while ${this.#life}`)
    const { memory, activeNode, shape, slot } = this.#record
    if (memory === undefined) throw new MachineError('vmm_protocol', 'the machine has no memory file')
    this.#life = 'saving'
    if (into.afterwards === 'stop') this.#why = { reason: 'closed', detail: 'saved and stopped' }
    try {
      const saved = await saveMachine({
        vmm: this.#vmm,
        uid: slot.uid,
        memory,
        memoryBytes: shape.memoryMib * 2 ** 20,
        disk: this.#disk,
        activeNode: activeNode ?? rootNode,
        into,
      })
      this.#disk = saved.disk
      if (into.afterwards === 'resume') {
        this.#record = { ...this.#record, activeNode: saved.activeNode }
        writeRecord(this.folder, this.#record)
      } else await this.exited
      const identity = identityOf(this.#host, shape, this.#guestImageDigest)
      const snapshot = { memory: saved.memory, devices: saved.devices, identity }
      return { snapshot, disk: saved.disk, stoppedMs: saved.stoppedMs }
    } catch (error) {
      if (this.#life === 'saving') this.#why = undefined
      throw error
    } finally {
      if (this.#life === 'saving') this.#life = 'held'
    }
  }

  async guest(signal?: AbortSignal): Promise<Duplex> {
    this.#channel?.destroy()
    const deadline = performance.now() + dialMs
    for (;;) {
      signal?.throwIfAborted()
      if (this.#life === 'ending' || this.#life === 'released')
        throw new MachineError('machine_closed', 'the machine has ended')
      try {
        const { socket } = dialIn(this.folder, sockets.guest)
        socket.on('error', () => undefined) // Whoever uses it listens too; nobody has to.
        this.#channel = socket
        return socket
      } catch (error) {
        if (errorCode(error) !== 'EAGAIN') throw this.#dialFailure(error)
        if (performance.now() > deadline) throw this.#dialFailure(error)
        await sleep(5, undefined, signal === undefined ? {} : { signal })
      }
    }
  }

  async usage(): Promise<MachineUsage> {
    const [memoryBytes, diskBytes] = await Promise.all([
      proportionalBytes(this.#vmm.pid),
      allocatedBytes(this.#disk.writable).catch(() => 0),
    ])
    return { cpuSeconds: (readStat(this.#vmm.pid)?.cpuTicks ?? 0) / ticksPerSecond, memoryBytes, diskBytes }
  }

  async close(): Promise<void> {
    if (this.#life === 'released') return
    this.#why ??= { reason: 'closed', detail: 'closed by the node' }
    await this.#vmm.kill()
    await this.exited
  }

  async release(): Promise<void> {
    if (this.#life === 'ending' || this.#life === 'released') return
    this.#life = 'released'
    this.#channel?.destroy()
    this.#vmm.release()
  }

  async #command(name: string): Promise<void> {
    await this.#vmm.explained(this.#vmm.qmp.execute(name))
  }

  #dialFailure(cause: unknown): Error {
    if (cause instanceof HostError || errorCode(cause) === 'ENOENT')
      return new MachineError('vmm_gone', 'the guest channel cannot be dialled', { cause })
    return cause instanceof Error ? cause : new MachineError('vmm_gone', String(cause))
  }

  /** The VMM stays, stopped, when its guest is over, so that the reason can be told; then it is let go. */
  async #onEvent({ name, data }: QmpEvent): Promise<void> {
    if (name !== 'SHUTDOWN' && name !== 'GUEST_PANICKED') return
    const reason = exitReason(name, data['reason'])
    if (reason === undefined || this.#why !== undefined) return
    this.#why = { reason, detail: `the guest ended: ${reason}` }
    const console = reason === 'guest_panicked' ? await this.#consoleTail() : ''
    if (console !== '') this.#why = { reason, detail: console }
    await this.#vmm.quit()
  }

  async #consoleTail(): Promise<string> {
    const text = await this.#vmm.qmp
      .execute('ringbuf-read', { device: 'console', size: consoleBytes * 8 }, { timeoutMs: 2_000 })
      .catch(() => '')
    return typeof text === 'string' ? printable(text.replaceAll('\r', '')).slice(-consoleBytes) : ''
  }

  async #afterEnd(end: VmmEnd): Promise<MachineExit> {
    this.#life = 'ending'
    this.#channel?.destroy()
    const left = await this.#clearAway()
    const exit = this.#why ?? { reason: endReason(end), detail: lastWords(end) }
    return left === '' ? exit : { ...exit, detail: `${exit.detail}; not removed: ${left}` }
  }

  /** Removes what the machine had on the host. What fails stays in the record and is the next `clear`'s. */
  async #clearAway(): Promise<string> {
    try {
      await this.#host.slots.release(this.#record.slot)
      ownByRoot(this.#disk.writable)
      removeMachineFiles(this.folder)
      return ''
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }
}

/** What a SHUTDOWN event means, or undefined when it is the node's own doing. A guest that resets has panicked. */
export function exitReason(event: string, cause: unknown): MachineExitReason | undefined {
  if (event === 'GUEST_PANICKED' || cause === 'guest-panic' || cause === 'guest-reset')
    return 'guest_panicked'
  if (cause === 'guest-shutdown') return 'powered_off'
  if (cause === 'host-signal') return 'vmm_killed'
  return undefined
}

function endReason(end: VmmEnd): MachineExitReason {
  return end.signal === 'SIGKILL' || end.signal === 'SIGTERM' ? 'vmm_killed' : 'vmm_died'
}

function ownByRoot(path: string): void {
  try {
    using file = openToRead(path)
    if (fstatSync(file.fd).uid !== 0) fchownSync(file.fd, 0, 0)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
}
