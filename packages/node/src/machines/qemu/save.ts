/**
 * Saving a machine whose guest the caller has frozen: memory, devices and disk of one instant.
 *
 *   restored: copy the file memory is mapped from, by extents or reflink      (vCPUs may run)
 *   stop                                                                      (QEMU flushes the disk)
 *   device state · pages of its own, or all of a booted machine's · new disk layer
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
import { isMemory } from './memory-files.ts'
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
  ftruncateSync(memoryFile.fd, request.memoryBytes)
  if (!isBooted(request)) await copyAhead(request, mapped, memoryFile)
  const stoppedAt = performance.now()
  await vmm.explained(vmm.qmp.execute('stop'))
  let activeNode = request.activeNode
  try {
    await saveDevices(vmm, devicesFile)
    await copyMemory(request, mapped, memoryFile)
    if (into.afterwards === 'resume') activeNode = await newLayer(request)
  } catch (error) {
    await vmm.qmp.execute('cont').catch(() => undefined)
    throw error
  }
  if (into.afterwards === 'resume') await vmm.explained(vmm.qmp.execute('cont'))
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

/** Whether the machine was booted: then the file is its memory; else its memory is the file and the pages it changed. */
function isBooted({ memory }: SaveRequest): boolean {
  return memory.source === ''
}

/** The file guest memory is mapped from, taken from the VMM, since the snapshot it came from may be gone. */
function takeMappedMemory(request: SaveRequest): Descriptor {
  const file = request.vmm.held.takeDescriptor(request.memory.vmmFd)
  if (isMemory(file, request.memoryBytes, !isBooted(request))) return file
  file.close()
  throw new MachineError('vmm_protocol', 'the VMM changed its memory descriptor')
}

/** Fills the new memory file with what the machine was restored from, while it still runs. */
async function copyAhead(
  { memory, memoryBytes }: SaveRequest,
  mapped: Descriptor,
  to: Descriptor,
): Promise<void> {
  if (!reflinked(memory.source, to)) await copyData(mapped.fd, to.fd, memoryBytes)
}

/** What only the stopped machine can tell: all its memory, or the pages it changed. */
async function copyMemory(request: SaveRequest, mapped: Descriptor, to: Descriptor): Promise<void> {
  const { vmm, memoryBytes } = request
  if (isBooted(request)) {
    await copyData(mapped.fd, to.fd, memoryBytes, { sparse: true })
    return
  }
  const ranges = await guestRanges(vmm.pid, fstatSync(mapped.fd).ino, memoryBytes)
  await copyOwnPages({ pid: vmm.pid, ranges, to: to.fd })
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
    vmm.explained(vmm.qmp.execute('xen-save-devices-state', { filename, live: false })),
  )
}

/** Freezes the active layer under a new one. Answers the new active node. */
async function newLayer({ vmm, activeNode, into, uid }: SaveRequest): Promise<string> {
  const name = layerNode(freezesOf(activeNode) + 1)
  using file = letWrite(openToWrite(into.nextWritable), uid)
  await withFdset(vmm, file, (filename) =>
    vmm.explained(vmm.qmp.execute('blockdev-add', writableLayer(name, filename, null))),
  )
  await vmm.explained(vmm.qmp.execute('blockdev-snapshot', { node: activeNode, overlay: name }))
  return name
}

/** Gives a running VMM a file for one command, under a name it can open, and takes the name away afterwards. */
async function withFdset(vmm: Vmm, file: Descriptor, use: (path: string) => Promise<unknown>): Promise<void> {
  const answer = await vmm.explained(vmm.qmp.execute('add-fd', {}, { descriptors: [file.fd] }))
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
