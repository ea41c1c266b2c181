/**
 * What every machine boots: the kernel, an initramfs with the agent as its first process, and the drive with all modules.
 * An image is named by its content and never changed; `images/current.json` says which one is in use and what it was
 * made from.
 *
 *   images/<digest>/vmlinux · initramfs.cpio · modules.ext4 · image.json
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { link, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { GuestImage } from '../machines/machine.ts'
import { agentKey, type BuiltAgent } from './agent.ts'
import { type CpioFile, writeCpio } from './cpio.ts'
import { SetUpError } from './errors.ts'
import { cachedKernel, type Kernel } from './kernel.ts'
import { type ImagePaths, imagePaths, type SpaceHome } from './paths.ts'
import { publishFolder, publishJson, readJson } from './publish.ts'

/** What an image was made from: as long as these stay, the image stays. */
export interface CurrentImage {
  readonly digest: string
  readonly agent: string
  readonly kernel: string
}

/** The guest image in use. `image_missing` when there is none yet. */
export async function loadGuestImage(home: SpaceHome): Promise<GuestImage> {
  const paths = imagePaths(home)
  const current = parseCurrent(await readJson(paths.currentImage))
  const image = current && (await readImage(join(paths.images, current.digest)))
  if (image === undefined)
    throw new SetUpError('image_missing', 'The guest image is not made yet.', 'space up makes it.')
  return image
}

/** Whether the image in use was made from these sources and this kernel, and is all there. */
export async function guestImageIsCurrent(
  paths: ImagePaths,
  guestFolder: string,
  override?: string,
): Promise<boolean> {
  const current = parseCurrent(await readJson(paths.currentImage))
  const kernel = await cachedKernel(paths.cache, override)
  if (current === undefined || kernel === undefined) return false
  if (current.agent !== (await agentKey(guestFolder)) || current.kernel !== kernel.package) return false
  return (await readImage(join(paths.images, current.digest))) !== undefined
}

/** Puts an image together and makes it the one in use. */
export async function makeGuestImage(
  home: SpaceHome,
  kernel: Kernel,
  agent: BuiltAgent,
): Promise<GuestImage> {
  const paths = imagePaths(home)
  const initramfs = await makeInitramfs(kernel, agent.path)
  const files = {
    vmlinux: join(kernel.folder, 'vmlinux'),
    'modules.ext4': join(kernel.folder, 'modules.ext4'),
  }
  const digest = createHash('sha256').update(`${kernel.release}\n`)
  for (const [name, path] of Object.entries(files)) digest.update(`${name} ${await fileDigest(path)}\n`)
  digest.update(`initramfs.cpio ${createHash('sha256').update(initramfs).digest('hex')}\n`)
  const name = digest.digest('hex')
  const folder = join(paths.images, name)
  await publishFolder(folder, async (making) => {
    for (const [file, path] of Object.entries(files)) await link(path, join(making, file))
    await writeFile(join(making, 'initramfs.cpio'), initramfs, { mode: 0o444 })
    await publishJson(join(making, 'image.json'), {
      digest: name,
      kernel_release: kernel.release,
      kernel_package: kernel.package,
      agent: agent.key,
    })
  })
  await publishJson(paths.currentImage, { digest: name, agent: agent.key, kernel: kernel.package })
  return await loadGuestImage(home)
}

/** The first root filesystem: the agent as `/init`, and the modules it loads with their order. */
async function makeInitramfs(kernel: Kernel, agent: string): Promise<Buffer> {
  const modules = join(kernel.folder, 'initramfs')
  const order = await readFile(join(modules, 'order'))
  const files: CpioFile[] = [
    { path: 'init', mode: 0o755, content: await readFile(agent) },
    { path: 'modules/order', mode: 0o644, content: order },
  ]
  for (const name of order.toString('utf8').split('\n').filter(Boolean))
    files.push({ path: `modules/${name}`, mode: 0o644, content: await readFile(join(modules, name)) })
  return writeCpio(files)
}

async function readImage(folder: string): Promise<GuestImage | undefined> {
  const record = await readJson(join(folder, 'image.json'))
  if (typeof record !== 'object' || record === null) return undefined
  const { digest, kernel_release: kernelRelease } = record as Record<string, unknown>
  if (typeof digest !== 'string' || typeof kernelRelease !== 'string') return undefined
  const image = {
    vmlinux: join(folder, 'vmlinux'),
    initramfs: join(folder, 'initramfs.cpio'),
    modulesDrive: join(folder, 'modules.ext4'),
    kernelRelease,
    digest: `sha256:${digest}`,
  }
  for (const file of [image.vmlinux, image.initramfs, image.modulesDrive])
    if (((await stat(file).catch(() => undefined))?.size ?? 0) === 0) return undefined
  return image
}

/** The content of `images/current.json`; undefined when it is none. */
export function parseCurrent(value: unknown): CurrentImage | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { digest, agent, kernel } = value as Record<string, unknown>
  if (typeof digest !== 'string' || typeof agent !== 'string' || typeof kernel !== 'string') return undefined
  return { digest, agent, kernel }
}

async function fileDigest(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path, { highWaterMark: 1024 * 1024 }), hash)
  return hash.digest('hex')
}
