/**
 * A bare QEMU with the devices of `device_set: 1` in their order, and nothing of the product around it: no uid of its
 * own, no namespace, no cgroup, sockets in a folder. The network device has no peer.
 *
 * `boot` starts it with its memory in a shared file, so that the file is the snapshot once the machine has stopped.
 * `startAhead` leaves it waiting in `-preconfig`; `claim` gives it memory and disk and restores the devices.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { accelerator } from '../accelerator.ts'
import { FloorError } from './errors.ts'
import type { Image } from './image.ts'
import { openQmp, type Qmp } from './qmp.ts'

const quitTimeoutMs = 5_000

export interface Vmm {
  readonly pid: number
  readonly qmp: Qmp
  readonly guestSocket: string
  /** From the start of the process to the end of QMP's negotiation. */
  readonly startMs: number
  quit(): Promise<void>
}

export interface Snapshot {
  readonly memory: string
  readonly devices: string
  /** The qcow2 layer of the saved instant; a restored machine writes one over it. */
  readonly disk: string
}

/** Boots a guest whose memory is the shared file `memory` and whose root is the qcow2 layer `disk`. */
export async function boot(
  folder: string,
  image: Image,
  memoryMib: number,
  memory: string,
  disk: string,
): Promise<Vmm> {
  return await start(folder, [
    ...machineArguments(memoryMib, ',memory-backend=mem'),
    '-object',
    `memory-backend-file,id=mem,size=${memoryMib}M,mem-path=${memory},share=on`,
    ...driveArguments(image, disk),
    '-kernel',
    image.vmlinux,
    '-initrd',
    image.initramfs,
    '-append',
    `quiet tsc=reliable tsc_early_khz=${image.tscKhz} random.trust_cpu=1 panic=-1 reboot=t`,
    ...deviceArguments(folder),
  ])
}

/** Starts a QEMU that waits for its memory and disk. */
export async function startAhead(folder: string, memoryMib: number): Promise<Vmm> {
  return await start(folder, [
    ...machineArguments(memoryMib, ''),
    '-preconfig',
    '-incoming',
    'defer',
    '-global',
    'migration.send-configuration=off',
    ...deviceArguments(folder),
  ])
}

/** Gives a waiting QEMU the snapshot, memory mapped private, with `layer` as its disk; resolves when the guest runs. */
export async function claim(
  vmm: Vmm,
  folder: string,
  image: Image,
  memoryMib: number,
  from: Snapshot,
  layer: string,
) {
  const { qmp } = vmm
  const sizeBytes = memoryMib * 1024 * 1024
  await qmp.command('object-add', {
    'qom-type': 'memory-backend-file',
    id: 'mem',
    size: sizeBytes,
    'mem-path': from.memory,
    share: false,
  })
  await qmp.command('blockdev-add', rootNode(layer))
  await qmp.command('blockdev-add', modulesNode(image))
  await qmp.command('qom-set', { path: '/machine', property: 'memory-backend', value: 'mem' })
  await qmp.command('x-exit-preconfig')
  const devices = await readFile(from.devices)
  const path = join(folder, 'incoming')
  const running = qmp.event('RESUME')
  await qmp.command('migrate-incoming', { uri: `unix:${path}` })
  const source = connect(path)
  await once(source, 'connect')
  source.end(devices)
  await running
}

/** Stops the guest and writes its device state; its memory file and disk are then those of the same instant. */
export async function save(vmm: Vmm, devices: string): Promise<void> {
  await vmm.qmp.command('stop')
  await vmm.qmp.command('xen-save-devices-state', { filename: devices, live: false })
}

async function start(folder: string, args: readonly string[]): Promise<Vmm> {
  const startedAt = performance.now()
  const child = spawn('qemu-system-x86_64', [...args, '-qmp', 'stdio'], { stdio: ['pipe', 'pipe', 'pipe'] })
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(-4096)
  })
  const orphaned = () => child.kill('SIGKILL')
  process.once('exit', orphaned)
  child.once('exit', () => process.off('exit', orphaned))
  const failed = new Promise<never>((_, reject) => {
    child.once('error', (error) => reject(new FloorError(`QEMU could not be started: ${error.message}`)))
    child.once('exit', (code) => reject(new FloorError(`QEMU ended with code ${code}: ${stderr.trim()}`)))
  })
  failed.catch(() => undefined)
  // A QEMU that refuses its arguments closes its channel first and says why a moment later.
  const opened = openQmp(child.stdin, child.stdout).catch(async (error: unknown) => {
    await delay(500)
    throw error
  })
  const qmp = await Promise.race([opened, failed])
  return {
    pid: child.pid ?? 0,
    qmp,
    guestSocket: join(folder, 'guest'),
    startMs: performance.now() - startedAt,
    quit: () => quit(child, qmp),
  }
}

async function quit(child: ChildProcess, qmp: Qmp): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  const killer = setTimeout(() => child.kill('SIGKILL'), quitTimeoutMs)
  qmp.command('quit').catch(() => child.kill('SIGKILL'))
  await gone
  clearTimeout(killer)
}

function machineArguments(memoryMib: number, suffix: string): string[] {
  return [
    '-M',
    `microvm,acpi=on,pit=on,pic=on,rtc=on${suffix}`,
    '-accel',
    accelerator === 'tcg' ? 'tcg,thread=multi,tb-size=256' : 'kvm',
    '-cpu',
    'max,-svm,-vmx',
    '-m',
    `${memoryMib}M`,
    '-smp',
    '1',
    '-nodefaults',
    '-no-user-config',
    '-display',
    'none',
    '-serial',
    'none',
    '-no-reboot',
  ]
}

function driveArguments(image: Image, disk: string): string[] {
  const json = (node: unknown) => JSON.stringify(node)
  return ['-blockdev', json(rootNode(disk)), '-blockdev', json(modulesNode(image))]
}

function rootNode(path: string) {
  return { driver: 'qcow2', 'node-name': 'root', file: { driver: 'file', filename: path } }
}

function modulesNode(image: Image) {
  return {
    driver: 'raw',
    'node-name': 'modules',
    'read-only': true,
    file: { driver: 'file', filename: image.modulesDrive, 'read-only': true },
  }
}

function deviceArguments(folder: string): string[] {
  return [
    '-device',
    'virtio-blk-device,drive=root,serial=root',
    '-device',
    'virtio-blk-device,drive=modules,serial=modules',
    '-netdev',
    'hubport,id=net0,hubid=0',
    '-device',
    'virtio-net-device,netdev=net0,mac=02:53:50:41:43:45',
    '-chardev',
    `socket,id=guest,path=${join(folder, 'guest')},server=on,wait=off`,
    '-device',
    'virtio-serial-device',
    '-device',
    'virtserialport,chardev=guest,name=space.guest.0',
    '-object',
    'rng-random,id=rng0,filename=/dev/urandom',
    '-device',
    'virtio-rng-device,rng=rng0',
    '-device',
    'virtio-balloon-device',
  ]
}
