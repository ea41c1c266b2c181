/**
 * Makes a base snapshot: boot in a machine that belongs to nobody, wait until the agent answers, run what every first
 * command needs once (so that it is in memory), sync, freeze workload and filesystem, save, stop.
 */
import { chmod, mkdir, rm, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createLayer } from '../disks/index.ts'
import { attachRequests, type GuestLink, memorySecrets, openGuestSession } from '../guest/index.ts'
import type { GuestImage, MachineDriver, Shape } from '../machines/machine.ts'
import { type BaseManifest, baseFiles, type FileFact, makingFolder, placeBase } from './base.ts'
import { sparseDigests } from './digest.ts'

export interface MakeBaseOptions {
  readonly driver: MachineDriver
  readonly guestImage: GuestImage
  readonly template: BaseTemplate
  readonly shape: Shape
  readonly nowMs: number
  /** Longest time from the start of the VMM to the agent's answer. */
  readonly bootTimeoutMs: number
  readonly signal: AbortSignal
}

export interface BaseTemplate {
  readonly digest: string
  readonly folder: string
  readonly rootImage: string
  readonly diskMib: number
  readonly user: string
}

/** Programs whose pages and caches every restored machine then has from the start. */
const warmUps: readonly (readonly string[])[] = [
  ['/bin/true'],
  ['/bin/sh', '-c', 'true'],
  ['/bin/bash', '-c', 'true'],
  ['python3', '-c', 'pass'],
]
const settleMs = 300
/** Nobody waits for this guest: it may take longer than one that is in use. */
const freezePatience = { cgroupTimeoutMs: 5_000, filesystemTimeoutMs: 10_000 }

/** Resolves once the base is in its place. Whatever happens, no machine of it remains. */
export async function makeBase(options: MakeBaseOptions): Promise<void> {
  const { driver, template, shape } = options
  const making = makingFolder(template.folder, shape, `${process.pid}-${options.nowMs}`)
  const machineFolder = join(making, 'machine')
  await mkdir(machineFolder, { recursive: true, mode: 0o700 })
  try {
    const manifest = await bootAndSave(options, making, machineFolder)
    await rm(machineFolder, { recursive: true, force: true })
    await placeBase(making, template.folder, shape, manifest)
  } finally {
    await driver.clear(machineFolder)
    await rm(making, { recursive: true, force: true })
  }
}

async function bootAndSave(
  options: MakeBaseOptions,
  making: string,
  machineFolder: string,
): Promise<BaseManifest> {
  const { driver, template, shape, guestImage, signal } = options
  const disk = { base: template.rootImage, frozen: [], writable: join(making, baseFiles.disk) }
  await createLayer(disk.writable, template.diskMib * 2 ** 20)
  const spec = { folder: machineFolder, sandboxId: 'base', shape, guestImage, disk }
  const machine = await driver.boot(spec, signal)
  const secrets = memorySecrets()
  const session = openGuestSession({ machine, secrets })
  try {
    const patience = AbortSignal.any([signal, AbortSignal.timeout(options.bootTimeoutMs)])
    const link = await session.link(patience)
    await warmUp(link, template.user, patience)
    await delay(settleMs, undefined, { signal })
    await link.client.sync({})
    await link.client.freeze(freezePatience)
    const saved = await machine.save({
      folder: making,
      nextWritable: join(making, 'next.qcow2'),
      afterwards: 'stop',
    })
    await rm(join(making, 'next.qcow2'), { force: true })
    const { current } = await secrets.read()
    const names = [saved.snapshot.memory, saved.snapshot.devices, disk.writable].map((path) => basename(path))
    await chmod(disk.writable, 0o444)
    return {
      version: 1,
      templateDigest: template.digest,
      identity: saved.snapshot.identity,
      agentBuild: link.hello.agentBuild,
      linkSecret: Buffer.from(current).toString('hex'),
      files: await fileFacts(making, names),
      madeAtMs: options.nowMs,
    }
  } finally {
    await session.close()
    await machine.close()
  }
}

async function fileFacts(folder: string, names: readonly string[]): Promise<FileFact[]> {
  const paths = names.map((name) => join(folder, name))
  const sizes = await Promise.all(paths.map(async (path) => (await stat(path)).size))
  const digests = await sparseDigests(paths)
  return names.map((name, index) => ({ name, bytes: sizes[index] ?? 0, sha256: digests[index] ?? '' }))
}

/** Runs each program once; one the template does not have is left out. */
async function warmUp(link: GuestLink, user: string, signal: AbortSignal): Promise<void> {
  for (const [index, argv] of warmUps.entries()) {
    const processId = `warmup${index}`
    const requests = attachRequests({ case: 'start', value: { processId, argv: [...argv], user } })
    for await (const response of link.client.attach(requests, { signal })) {
      if (response.kind.case === 'exited' || response.kind.case === 'startFailed') break
    }
    requests.end()
    await link.client.forget({ processIds: [processId] })
  }
}
