/**
 * Machines on QEMU's `microvm`, under KVM or emulated. One VMM process a machine; it outlives the node service.
 *
 *   slot (uid, namespace, group) → VMM waiting in -preconfig → memory, disks, kernel or device state → running
 */
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Descriptor } from '../../host/descriptors.ts'
import { kvmMissing } from '../../host/kvm.ts'
import { runProgram } from '../../host/programs.ts'
import { SlotPool, type SlotPoolOptions } from '../../net/slot-pool.ts'
import type {
  Machine,
  MachineDriver,
  MachineSnapshot,
  MachineSpec,
  Shape,
  SnapshotIdentity,
} from '../machine.ts'
import { MachineError } from '../machine-error.ts'
import { adoptMachine, clearMachine } from './adopt.ts'
import { rootNode } from './block-nodes.ts'
import { cpuModelFor } from './cpu-model.ts'
import { ExitWatch } from './exit-watch.ts'
import { removeMachineFiles } from './folder.ts'
import type { QemuHost } from './host-setup.ts'
import { whyRefused } from './identity.ts'
import { type Launched, launchVmm } from './launch.ts'
import { emptyMemory, MemoryFiles } from './memory-files.ts'
import { provision } from './provision.ts'
import { QemuMachine } from './qemu-machine.ts'
import { ReadyPool } from './ready-pool.ts'
import { readRecord, writeRecord } from './record.ts'
import { loadDevices } from './restore.ts'

export interface QemuDriverOptions {
  /** SPACE_HOME: VMMs started ahead lie under `node/ready` there, and slots are told apart by it. */
  readonly home: string
  /** Measured rate of the host's time stamp counter, in kHz; 0 lets each guest measure it, which fails under load. */
  readonly tscKhz: number
  /** By default KVM where it works, else emulation. */
  readonly accelerator?: 'kvm' | 'tcg'
  readonly program?: string
  /** Slots kept ahead of VMMs that are started on demand. */
  readonly spareSlots?: number
  readonly slots?: Omit<SlotPoolOptions, 'home'>
}

/** Makes the driver and removes what an earlier node left half made. HostError when QEMU is not installed. */
export async function qemuDriver(options: QemuDriverOptions): Promise<MachineDriver> {
  const host = await describeHost(options)
  const ready = join(options.home, 'node', 'ready')
  const driver = new QemuDriver(host, new ReadyPool(host, ready))
  for (const name of readdirSync(ready)) {
    await clearMachine(host, join(ready, name))
    rmSync(join(ready, name), { recursive: true, force: true })
  }
  await host.slots.sweep((folder, token) => folder !== '' && readRecord(folder)?.slot.token === token)
  host.slots.keep(options.spareSlots ?? 1)
  return driver
}

async function describeHost(options: QemuDriverOptions): Promise<QemuHost> {
  const program = options.program ?? 'qemu-system-x86_64'
  const accelerator = options.accelerator ?? (kvmMissing() === undefined ? 'kvm' : 'tcg')
  const version = /version (\d+\.\d+\.\d+)/.exec(await runProgram(program, ['--version']))?.[1]
  if (version === undefined) throw new MachineError('vmm_start_failed', `${program} does not say its version`)
  return {
    program,
    version,
    environment: { id: `qemu-${accelerator}`, machine: `qemu ${version}`, accelerator },
    cpuModel: cpuModelFor(accelerator, readFileSync('/proc/cpuinfo', 'utf8')),
    tscKhz: options.tscKhz,
    slots: new SlotPool({ home: options.home, ...options.slots }),
    watch: new ExitWatch(),
    memoryFiles: new MemoryFiles(),
  }
}

class QemuDriver implements MachineDriver {
  readonly name = 'qemu'
  readonly environment: QemuHost['environment']
  readonly #host: QemuHost
  readonly #ready: ReadyPool

  constructor(host: QemuHost, ready: ReadyPool) {
    this.#host = host
    this.#ready = ready
    this.environment = host.environment
  }

  async boot(spec: MachineSpec, signal?: AbortSignal): Promise<Machine> {
    using memory = emptyMemory(memoryBytes(spec.shape))
    const launched = await this.#launch(spec, false, signal)
    return await this.#finish(spec, launched, { memory, source: '' }, signal)
  }

  async restore(spec: MachineSpec, snapshot: MachineSnapshot, signal?: AbortSignal): Promise<Machine> {
    const refused = this.refuses(snapshot.identity) ?? mismatch(spec, snapshot.identity)
    if (refused !== undefined) throw new MachineError('snapshot_unusable', refused)
    using memory = await this.#host.memoryFiles.of(snapshot.memory, memoryBytes(spec.shape))
    signal?.throwIfAborted()
    const launched = this.#ready.claim(spec.shape, spec.folder) ?? (await this.#launch(spec, true, signal))
    return await this.#finish(
      spec,
      launched,
      { memory, source: snapshot.memory, devices: snapshot.devices },
      signal,
    )
  }

  async adopt(spec: MachineSpec): Promise<Machine | undefined> {
    return adoptMachine(this.#host, spec)
  }

  async clear(folder: string): Promise<void> {
    await clearMachine(this.#host, folder)
  }

  refuses(identity: SnapshotIdentity): string | undefined {
    return whyRefused(this.#host, identity)
  }

  async keepReady(shape: Shape, count: number): Promise<void> {
    await this.#ready.keep(shape, count)
  }

  async stop(): Promise<void> {
    await this.#ready.stop()
    await this.#host.slots.stop()
    this.#host.memoryFiles.close()
  }

  async #launch(spec: MachineSpec, incoming: boolean, signal?: AbortSignal): Promise<Launched> {
    const { folder, shape } = spec
    const slot = await this.#host.slots.acquire(folder, signal)
    try {
      return await launchVmm(this.#host, { folder, slot, shape, incoming }, signal)
    } catch (error) {
      await this.#host.slots.release(slot)
      removeMachineFiles(folder)
      throw error
    }
  }

  /** From a waiting VMM to a running machine. Whatever fails, nothing of it stays. */
  async #finish(
    spec: MachineSpec,
    { vmm, record }: Launched,
    from: { memory: Descriptor; source: string; devices?: string },
    signal?: AbortSignal,
  ): Promise<Machine> {
    try {
      const { memoryFd } = await provision(vmm, {
        memory: from.memory,
        memoryBytes: memoryBytes(spec.shape),
        disk: spec.disk,
        guestImage: spec.guestImage,
        uid: record.slot.uid,
        boot: from.devices === undefined ? { tscKhz: this.#host.tscKhz } : undefined,
      })
      if (from.devices !== undefined) await loadDevices(vmm, from.devices)
      signal?.throwIfAborted()
      const running = { vmmFd: memoryFd, source: from.source }
      const complete = { ...record, stage: 'running', memory: running, activeNode: rootNode } as const
      writeRecord(spec.folder, complete)
      const guestImageDigest = spec.guestImage.digest
      return new QemuMachine({
        host: this.#host,
        folder: spec.folder,
        record: complete,
        vmm,
        disk: spec.disk,
        guestImageDigest,
      })
    } catch (error) {
      await vmm.kill()
      await clearMachine(this.#host, spec.folder)
      throw error
    }
  }
}

function memoryBytes(shape: Shape): number {
  return shape.memoryMib * 2 ** 20
}

function mismatch(spec: MachineSpec, identity: SnapshotIdentity): string | undefined {
  if (spec.guestImage.digest !== identity.guestImageDigest) return 'it was made with another guest image'
  const { vcpus, memoryMib } = identity.shape
  if (spec.shape.vcpus !== vcpus || spec.shape.memoryMib !== memoryMib)
    return `its shape is ${vcpus} vCPUs and ${memoryMib} MiB`
  return undefined
}
