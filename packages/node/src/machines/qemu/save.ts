/**
 * Saving a machine whose guest the caller has frozen: memory, devices and disk of one instant.
 *
 *   copy the file memory was mapped from, by extents or reflink     (vCPUs may run)
 *   stop                                                            (QEMU flushes the disk)
 *   device state · own pages · new disk layer
 *   cont, or quit
 *   sync, make read-only
 */
import { fstatSync, fsyncSync, ftruncateSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { ensureLayerAfter } from '../../disks/chain.ts'
import { copyData } from '../../host/copy.ts'
import { createFile, type Descriptor, openToRead, openToWrite, tryReflink } from '../../host/descriptors.ts'
import { errorCode } from '../../host/host-error.ts'
import type { DiskChain, SaveTarget } from '../machine.ts'
import { MachineError } from '../machine-error.ts'
import { freezesOf, layerNode, writableLayer } from './block-nodes.ts'
import { copyOwnPages, guestRanges } from './guest-memory.ts'
import { letWrite, takeBack } from './handover.ts'
import { isSealedMemory } from './memory-files.ts'
import { record } from './qmp-lines.ts'
import type { MemoryRecord } from './record.ts'
import type { Vmm } from './vmm.ts'

export const fileNames = { memory: 'memory', devices: 'devices' } as const

export interface SaveRequest {
  readonly vmm: Vmm
  readonly uid: number
  readonly memory: MemoryRecord
  readonly memoryBytes: number
  readonly disk: DiskChain
  readonly activeNode: string
  readonly into: SaveTarget
}

export interface Saved {
  readonly memory: string
  readonly devices: string
  readonly disk: DiskChain
  readonly activeNode: string
  readonly stoppedMs: number
}

/** Saves; with `then: 'stop'` the VMM has ended when it resolves. On failure before that the vCPUs run again. */
export async function saveMachine(request: SaveRequest): Promise<Saved> {
  const { vmm, into, disk } = request
  await ensureLayerAfter(disk.writable, into.nextWritable)
  const memoryPath = join(into.folder, fileNames.memory)
  const devicesPath = join(into.folder, fileNames.devices)
  using memoryFile = createFile(memoryPath)
  using devicesFile = createFile(devicesPath)
  using mapped = takeMappedMemory(request)
  const overZeroes = await copyAhead(request, mapped, memoryFile)
  const ranges = await guestRanges(vmm.pid, fstatSync(mapped.fd).ino, request.memoryBytes)
  const stoppedAt = performance.now()
  await vmm.whileAlive(vmm.qmp.execute('stop'))
  let activeNode = request.activeNode
  try {
    await saveDevices(vmm, devicesFile)
    await copyOwnPages({ pid: vmm.pid, ranges, to: memoryFile.fd, overZeroes })
    if (into.afterwards === 'resume') activeNode = await newLayer(request)
  } catch (error) {
    await vmm.qmp.execute('cont').catch(() => undefined)
    throw error
  }
  if (into.afterwards === 'resume') await vmm.whileAlive(vmm.qmp.execute('cont'))
  const stoppedMs = performance.now() - stoppedAt
  if (into.afterwards === 'stop') await vmm.quit()
  await finish([memoryPath, devicesPath, disk.writable])
  const frozen = [...disk.frozen, disk.writable]
  return {
    memory: memoryPath,
    devices: devicesPath,
    disk: { base: disk.base, frozen, writable: into.nextWritable },
    activeNode,
    stoppedMs,
  }
}

/** The sealed file guest memory is mapped from, taken from the VMM, since the file it came from may be gone. */
function takeMappedMemory({ vmm, memory, memoryBytes }: SaveRequest): Descriptor {
  const file = vmm.held.takeDescriptor(memory.vmmFd)
  if (isSealedMemory(file, memoryBytes)) return file
  file.close()
  throw new MachineError('vmm_protocol', 'the VMM changed its memory descriptor')
}

/** Fills the new memory file with what the machine started from; true when that is nothing but zeroes. */
async function copyAhead(
  { memory, memoryBytes }: SaveRequest,
  mapped: Descriptor,
  to: Descriptor,
): Promise<boolean> {
  ftruncateSync(to.fd, memoryBytes)
  if (memory.source === '') return true
  if (reflinked(memory.source, to)) return false
  await copyData(mapped.fd, to.fd, memoryBytes)
  return false
}

function reflinked(source: string, to: Descriptor): boolean {
  try {
    using from = openToRead(source)
    return tryReflink(from.fd, to.fd)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false
    throw error
  }
}

/** All devices without RAM: `xen` in the name of the command is history, it is a general one. */
async function saveDevices(vmm: Vmm, file: Descriptor): Promise<void> {
  await withFdset(vmm, file, (filename) =>
    vmm.whileAlive(vmm.qmp.execute('xen-save-devices-state', { filename, live: false })),
  )
}

/** Freezes the active layer under a new one. Answers the new active node. */
async function newLayer({ vmm, activeNode, into, uid }: SaveRequest): Promise<string> {
  const name = layerNode(freezesOf(activeNode) + 1)
  using file = letWrite(openToWrite(into.nextWritable), uid)
  await withFdset(vmm, file, (filename) =>
    vmm.whileAlive(vmm.qmp.execute('blockdev-add', writableLayer(name, filename, null))),
  )
  await vmm.whileAlive(vmm.qmp.execute('blockdev-snapshot', { node: activeNode, overlay: name }))
  return name
}

/** Gives a running VMM a file for one command, under a name it can open, and takes the name away afterwards. */
async function withFdset(vmm: Vmm, file: Descriptor, use: (path: string) => Promise<unknown>): Promise<void> {
  const answer = await vmm.whileAlive(vmm.qmp.execute('add-fd', {}, { descriptors: [file.fd] }))
  const set = Number(record(answer)['fdset-id'])
  try {
    await use(`/dev/fdset/${set}`)
  } finally {
    await vmm.qmp.execute('remove-fd', { 'fdset-id': set }).catch(() => undefined)
  }
}

/** Makes files durable and read-only for good. */
async function finish(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    const file = await open(path, 'r')
    try {
      await file.sync()
    } finally {
      await file.close()
    }
    using descriptor = openToRead(path)
    takeBack(descriptor)
    fsyncSync(descriptor.fd)
  }
}
