import { stat } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type {
  Environment,
  Machine,
  MachineDriver,
  MachineSpec,
  Shape,
  SnapshotIdentity,
} from '@space/node/machine'
import { FakeHost, shapeKey } from './host.ts'
import { fakeIdentity, readSnapshot, writeSnapshot } from './snapshot.ts'
import { FakeVm } from './vm.ts'

const environment: Environment = { id: 'fake', machine: 'fake 1', accelerator: 'none' }

/** Why a fake machine could not do what it was asked. */
export class FakeMachineError extends Error {
  override readonly name = 'FakeMachineError'
}

export interface FakeDriver extends MachineDriver {
  readonly host: FakeHost
  /** VMMs asked to be kept ahead, by `<vcpus>x<memoryMib>`. */
  readonly ready: ReadonlyMap<string, number>
}

/** The machine interface without a VMM. Drivers on the same host find each other's machines, as after a restart. */
export function fakeDriver(host: FakeHost = new FakeHost()): FakeDriver {
  const ready = new Map<string, number>()
  return {
    host,
    ready,
    name: 'fake',
    environment,
    async boot(spec, signal) {
      await begin(host.take('boot'), host.faults.bootMs, signal)
      return start(host, spec)
    },
    async restore(spec, snapshot, signal) {
      await begin(host.take('restore'), host.faults.restoreMs, signal)
      const refused = refusal(snapshot.identity)
      if (refused !== undefined) throw new FakeMachineError(refused)
      return start(host, spec, await readSnapshot(snapshot))
    },
    async adopt(spec) {
      const vm = host.machine(spec.folder)
      return vm === undefined ? undefined : handle(host, vm, spec)
    },
    async clear(folder) {
      const vm = host.machine(folder)
      vm?.end({ reason: 'vmm_killed', detail: 'cleared away' })
      await vm?.exited
    },
    refuses: refusal,
    async keepReady(shape: Shape, count: number) {
      if (count === 0) ready.delete(shapeKey(shape))
      else ready.set(shapeKey(shape), count)
    },
    async stop() {
      ready.clear()
    },
  }
}

function refusal(identity: SnapshotIdentity): string | undefined {
  const own = fakeIdentity(identity.shape, identity.guestImageDigest)
  const keys = ['driver', 'environment', 'vmmVersion', 'deviceSet', 'cpuModel'] as const
  const differs = keys.find((key) => identity[key] !== own[key])
  return differs === undefined
    ? undefined
    : `${differs} is ${own[differs]} here, the snapshot has ${identity[differs]}`
}

async function begin(fault: Error | undefined, tookMs = 0, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted()
  if (tookMs > 0) await delay(tookMs, undefined, signal === undefined ? {} : { signal })
  if (fault !== undefined) throw fault
}

async function start(
  host: FakeHost,
  spec: MachineSpec,
  saved?: Awaited<ReturnType<typeof readSnapshot>>,
): Promise<Machine> {
  if (host.machine(spec.folder) !== undefined) throw new FakeMachineError('the folder has a machine already')
  const vm = await FakeVm.start(spec.folder, spec.disk, saved)
  if (host.take('stallBoot') === true) vm.setStalled(true)
  host.add(vm)
  return handle(host, vm, spec)
}

function handle(host: FakeHost, vm: FakeVm, spec: MachineSpec): Machine {
  const streams = new Set<Socket>()
  let released = false
  return {
    folder: spec.folder,
    environment,
    exited: vm.exited,
    async pause() {
      vm.pause()
    },
    async resume() {
      vm.resume()
    },
    async save(into) {
      const fault = host.take('save')
      if (fault !== undefined) throw fault
      const wasPaused = vm.paused
      const stoppedAtMs = performance.now()
      vm.pause()
      const identity = fakeIdentity(spec.shape, spec.guestImage.digest)
      const snapshot = await writeSnapshot(into.folder, vm.guest.save(), identity)
      const { base, frozen, writable } = vm.disk
      vm.disk = { base, frozen: [...frozen, writable], writable: into.nextWritable }
      if (into.afterwards === 'stop') vm.end({ reason: 'closed', detail: 'saved' })
      else if (!wasPaused) vm.resume()
      if (into.afterwards === 'stop') await vm.exited
      return { snapshot, disk: vm.disk, stoppedMs: performance.now() - stoppedAtMs }
    },
    guest(signal) {
      if (released) return Promise.reject(new FakeMachineError('the handle was released'))
      return openChannel(vm, streams, signal)
    },
    async usage() {
      const diskBytes = await stat(vm.disk.writable).then(
        ({ size }) => size,
        () => 0,
      )
      return { cpuSeconds: process.cpuUsage().user / 1e6, memoryBytes: 22 * 1024 * 1024, diskBytes }
    },
    async close() {
      vm.end({ reason: 'closed', detail: 'by the node' })
      await vm.exited
    },
    async release() {
      released = true
      for (const stream of streams) stream.destroy()
    },
  }
}

function openChannel(vm: FakeVm, streams: Set<Socket>, signal?: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path: vm.channelAddress })
    streams.add(socket)
    socket.once('close', () => streams.delete(socket))
    const abort = () => socket.destroy(new FakeMachineError('given up'))
    signal?.addEventListener('abort', abort)
    if (signal?.aborted === true) abort()
    socket.once('error', reject)
    socket.once('connect', () => {
      signal?.removeEventListener('abort', abort)
      socket.off('error', reject)
      resolve(socket)
    })
  })
}
