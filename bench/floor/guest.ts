/** The rows of the floor that need a guest: it is booted once, saved, and restored as often as a row asks. */
import { execFile } from 'node:child_process'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type Channel, openChannel } from './channel.ts'
import { FloorError } from './errors.ts'
import type { Image } from './image.ts'
import { type AttachEvent, readAgentResidentBytes, readInfo } from './messages.ts'
import { boot, claim, type Snapshot, save, startAhead, type Vmm } from './vmm.ts'

const run = promisify(execFile)
const bootTimeoutMs = 180_000
const restoreTimeoutMs = 30_000
const settleMs = 2_000
const megabyte = 1_000_000

export interface Restored {
  readonly vmm: Vmm
  readonly channel: Channel
  /** From the claim of the waiting process to the exit of the first `/bin/true`. */
  readonly claimMs: number
  close(): Promise<void>
}

/** Boots the image once and saves it when it has settled; the snapshot's files lie in `folder`. */
export async function makeSnapshot(folder: string, image: Image, memoryMib: number): Promise<Snapshot> {
  const snapshot = {
    memory: join(folder, 'memory'),
    devices: join(folder, 'devices'),
    disk: join(folder, 'disk.qcow2'),
  }
  await newLayer(snapshot.disk, image.root, 'raw')
  const home = join(folder, 'boot')
  await mkdir(home)
  const vmm = await boot(home, image, memoryMib, snapshot.memory, snapshot.disk)
  try {
    const channel = await openChannel(vmm.guestSocket, bootTimeoutMs)
    await channel.run(['/bin/true'])
    await delay(settleMs)
    await channel.unary('Sync', Buffer.alloc(0))
    channel.close()
    await save(vmm, snapshot.devices)
  } finally {
    await vmm.quit()
  }
  return snapshot
}

/** Starts a QEMU ahead, waits until it is idle, then claims it and runs `/bin/true`. */
export async function restore(
  folder: string,
  image: Image,
  memoryMib: number,
  snapshot: Snapshot,
): Promise<Restored> {
  await mkdir(folder)
  const layer = join(folder, 'disk.qcow2')
  await newLayer(layer, snapshot.disk, 'qcow2')
  const vmm = await startAhead(folder, memoryMib)
  try {
    await delay(300)
    const startedAt = performance.now()
    await claim(vmm, folder, image, memoryMib, snapshot, layer)
    const channel = await openChannel(vmm.guestSocket, restoreTimeoutMs)
    const claimMs = (await exitOf(channel)) - startedAt
    const close = async () => {
      channel.close()
      await vmm.quit()
      await rm(folder, { recursive: true })
    }
    return { vmm, channel, claimMs, close }
  } catch (error) {
    await vmm.quit()
    throw error
  }
}

/** Milliseconds of each of `n` runs of `/bin/true`, from the request to its exit. */
export async function execTimes(channel: Channel, n: number): Promise<number[]> {
  return await timed(n, async () => await exitOf(channel))
}

/** Milliseconds of each of `n` requests of `Info`. */
export async function answerTimes(channel: Channel, n: number): Promise<number[]> {
  return await timed(n, async () => {
    await channel.unary('Info', Buffer.alloc(0))
    return performance.now()
  })
}

/** MB/s of one program printing `totalBytes` through one stream, from its first byte to its last. */
export async function streamSpeed(channel: Channel, totalBytes: number): Promise<number> {
  let bytes = 0
  let firstAt = 0
  let lastAt = 0
  await channel.run(['/usr/bin/head', '-c', String(totalBytes), '/dev/zero'], (event: AttachEvent) => {
    if (event.kind !== 'output') return
    lastAt = performance.now()
    if (firstAt === 0) firstAt = lastAt
    bytes += event.data.length
  })
  if (bytes !== totalBytes) throw new FloorError(`${bytes} bytes of ${totalBytes} came through the channel.`)
  return bytes / megabyte / ((lastAt - firstAt) / 1000)
}

/** What the agent itself says it keeps resident. */
export async function agentResidentBytes(channel: Channel): Promise<number> {
  return readAgentResidentBytes(await channel.unary('Usage', Buffer.alloc(0)))
}

/** Agent build and kernel release, for the report. */
export function guestVersions(channel: Channel): { agentBuild: string; kernelRelease: string } {
  return readInfo(channel.info)
}

async function exitOf(channel: Channel): Promise<number> {
  let exitedAt = 0
  await channel.run(['/bin/true'], (event) => {
    if (event.kind === 'exited') exitedAt = performance.now()
  })
  return exitedAt
}

async function timed(n: number, once: () => Promise<number>): Promise<number[]> {
  const values: number[] = []
  for (let count = 0; count < n; count++) {
    const startedAt = performance.now()
    values.push((await once()) - startedAt)
  }
  return values
}

async function newLayer(path: string, over: string, format: 'raw' | 'qcow2'): Promise<void> {
  await run('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', over, '-F', format, path])
}
