/** Makes a waiting VMM into the machine of a sandbox: memory, disks, kernel; then lets it be built. */
import { type Descriptor, openToRead, openToWrite } from '../../host/descriptors.ts'
import type { DiskChain, GuestImage } from '../machine.ts'
import { MachineError } from '../machine-error.ts'
import { kernelArguments } from './argv.ts'
import { belowNode, modulesNode, rawImage, readOnlyNode, rootNode, writableLayer } from './block-nodes.ts'
import { handOver, letRead, letWrite, maxAtOnce, numberIn } from './handover.ts'
import type { Vmm } from './vmm.ts'

export interface Provision {
  readonly memory: Descriptor
  readonly memoryBytes: number
  readonly disk: DiskChain
  readonly guestImage: GuestImage
  /** The uid the VMM runs under: the writable layer becomes its own. */
  readonly uid: number
  /** The kernel starts with these arguments; undefined when a snapshot's state follows. */
  readonly boot: { readonly tscKhz: number } | undefined
}

/** Gives it everything and leaves `-preconfig`. Answers the number the memory has among the VMM's descriptors. */
export async function provision(vmm: Vmm, plan: Provision): Promise<{ memoryFd: number }> {
  const command = (name: string, args: Record<string, unknown>): Promise<unknown> =>
    vmm.explained(vmm.qmp.execute(name, args))
  await giveMemory(vmm, command, plan)
  await giveDisks(vmm, command, plan)
  if (plan.boot !== undefined) await giveKernel(vmm, command, plan.guestImage, plan.boot.tscKhz)
  await command('x-exit-preconfig', {})
  await dropHandedOver(vmm)
  const memoryFd = numberIn(vmm.pid, plan.memory)
  if (memoryFd === undefined) throw new MachineError('vmm_protocol', 'the VMM does not hold its memory file')
  return { memoryFd }
}

type Command = (name: string, args: Record<string, unknown>) => Promise<unknown>

async function giveMemory(
  vmm: Vmm,
  command: Command,
  { memory, memoryBytes, boot }: Provision,
): Promise<void> {
  const [path = ''] = await handOver(vmm, [memory])
  await command('object-add', {
    'qom-type': 'memory-backend-file',
    id: 'memory',
    size: memoryBytes,
    'mem-path': path,
    share: boot !== undefined,
    prealloc: false,
    dump: false,
  })
  await command('qom-set', { path: '/machine', property: 'memory-backend', value: '/objects/memory' })
}

async function giveDisks(vmm: Vmm, command: Command, { disk, guestImage, uid }: Provision): Promise<void> {
  using modules = letRead(openToRead(guestImage.modulesDrive))
  using writable = letWrite(openToWrite(disk.writable), uid)
  const below = [disk.base, ...disk.frozen]
  for (let first = 0; first < below.length; first += maxAtOnce) await giveBelow(vmm, command, below, first)
  const [modulesPath = '', writablePath = ''] = await handOver(vmm, [modules, writable])
  await command('blockdev-add', rawImage(modulesPath, modulesNode))
  await command('blockdev-add', writableLayer(rootNode, writablePath, belowNode(below.length - 1)))
}

async function giveBelow(vmm: Vmm, command: Command, below: readonly string[], first: number): Promise<void> {
  using opened = new DisposableStack()
  const files = below.slice(first, first + maxAtOnce).map((path) => opened.use(letRead(openToRead(path))))
  for (const [index, path] of (await handOver(vmm, files)).entries())
    await command('blockdev-add', readOnlyNode(first + index, path))
}

async function giveKernel(vmm: Vmm, command: Command, image: GuestImage, tscKhz: number): Promise<void> {
  using kernel = letRead(openToRead(image.vmlinux))
  using initramfs = letRead(openToRead(image.initramfs))
  const [kernelPath, initramfsPath] = await handOver(vmm, [kernel, initramfs])
  const set = (property: string, value: unknown) => command('qom-set', { path: '/machine', property, value })
  await set('kernel', kernelPath)
  await set('initrd', initramfsPath)
  await set('append', kernelArguments(tscKhz === 0 ? undefined : tscKhz))
}

/** QEMU keeps the last descriptors until others come: something harmless takes their place. */
async function dropHandedOver(vmm: Vmm): Promise<void> {
  using nothing = openToRead('/dev/null')
  await handOver(vmm, [nothing])
}
