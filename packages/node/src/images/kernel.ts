/**
 * The guest's kernel: Debian's package for clouds, fetched and unpacked with the host's own package tools but never
 * installed. What is kept of it lies in the cache, made once a package:
 *
 *   kernel/<name>/vmlinux · modules.ext4 · initramfs/*.ko + order · kernel.json
 */
import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type AptSources, fetchPackage } from './apt.ts'
import { SetUpError } from './errors.ts'
import { makeExt4 } from './ext4.ts'
import { initramfsModules, loadOrder, parseBuiltinModules, parseModuleNeeds } from './modules.ts'
import { runProgram } from './program.ts'
import { publishFolder, publishJson, readJson } from './publish.ts'
import { unpack } from './unpack.ts'
import { extractVmlinux } from './vmlinux.ts'

/** Raised when what is made from a package changes, so that a cached kernel is made again. */
const kernelFormat = 1

const kernelPackage = 'linux-image-cloud-amd64'
const maxModuleBytes = 64 * 1024 * 1024
/** The package above is empty and depends on the one that holds the current kernel. */
const standsFor = /^\s*Depends: (linux-image-\S+)$/m

/** A kernel ready to be put into a guest image. */
export interface Kernel {
  readonly folder: string
  readonly release: string
  /** The package file it came from, with its version. */
  readonly package: string
}

/** The kernel the cache holds for this choice, or undefined. `override` is the value of SPACE_KERNEL. */
export async function cachedKernel(cache: string, override?: string): Promise<Kernel | undefined> {
  const folder = await kernelFolder(cache, override)
  const record = await readJson(join(folder, 'kernel.json'))
  if (typeof record !== 'object' || record === null || !('release' in record) || !('package' in record))
    return undefined
  return { folder, release: String(record.release), package: String(record.package) }
}

/** Fetches, unpacks and prepares the kernel, unless the cache already holds it. */
export async function prepareKernel(
  cache: string,
  sources: AptSources,
  options: { override?: string; progress?: (message: string) => void; signal?: AbortSignal },
): Promise<Kernel> {
  const cached = await cachedKernel(cache, options.override)
  if (cached !== undefined) return cached
  const run = options.signal === undefined ? {} : { signal: options.signal }
  await mkdir(join(cache, 'kernel'), { recursive: true, mode: 0o700 })
  const place = await kernelFolder(cache, options.override)
  return await publishFolder(place, async (folder) => {
    const work = join(folder, 'work')
    const tree = join(work, 'tree')
    await mkdir(tree, { recursive: true })
    options.progress?.('fetching the kernel package')
    const deb = options.override ?? (await fetchPackage(sources, kernelPackage, work, { ...run, standsFor }))
    options.progress?.(`unpacking ${basename(deb)}`)
    await runProgram('dpkg-deb', ['--extract', deb, tree], run)
    const release = await kernelRelease(tree)
    const vmlinux = await extractVmlinux(
      await readFile(join(tree, 'boot', `vmlinuz-${release}`)),
      options.signal,
    )
    await writeFile(join(folder, 'vmlinux'), vmlinux, { mode: 0o444 })

    const modulesRoot = join(work, 'modules-root')
    const modules = await moveModules(tree, modulesRoot)
    await runProgram('depmod', ['--basedir', modulesRoot, release], run)
    options.progress?.('packing the kernel modules')
    await keepInitramfsModules(join(modules, release), join(folder, 'initramfs'))
    const drive = join(folder, 'modules.ext4')
    await makeExt4({ image: drive, content: modules, ...run, kind: 'read-only' })
    await chmod(drive, 0o444)

    await rm(work, { recursive: true, force: true })
    const record = { release, package: basename(deb), format: kernelFormat }
    await publishJson(join(folder, 'kernel.json'), record)
    return { folder: place, release, package: record.package }
  })
}

/** Moves the modules to a root of their own, where `depmod` finds nothing else. */
async function moveModules(tree: string, to: string): Promise<string> {
  await mkdir(join(to, 'lib'), { recursive: true })
  await rename(join(tree, 'lib', 'modules'), join(to, 'lib', 'modules'))
  return join(to, 'lib', 'modules')
}

async function kernelRelease(tree: string): Promise<string> {
  const found = (await readdir(join(tree, 'boot')).catch(() => [])).find((name) =>
    name.startsWith('vmlinuz-'),
  )
  if (found === undefined)
    throw new SetUpError(
      'kernel_unusable',
      'The kernel package holds no boot/vmlinuz-*.',
      'Set SPACE_KERNEL to a linux-image .deb, or unset it.',
    )
  return found.slice('vmlinuz-'.length)
}

async function keepInitramfsModules(modules: string, folder: string): Promise<void> {
  const needs = parseModuleNeeds(await readFile(join(modules, 'modules.dep'), 'utf8'))
  const builtin = parseBuiltinModules(await readFile(join(modules, 'modules.builtin'), 'utf8'))
  const order = loadOrder(initramfsModules, needs, builtin)
  await mkdir(folder)
  const names: string[] = []
  for (const path of order) {
    const name = basename(path).replace(/\.ko\.\w+$/, '.ko')
    await writeFile(join(folder, name), await unpack(await readFile(join(modules, path)), maxModuleBytes))
    names.push(name)
  }
  await writeFile(join(folder, 'order'), names.map((name) => `${name}\n`).join(''))
}

/** One folder a choice; a package file that was replaced by another of its name is another choice. */
async function kernelFolder(cache: string, override: string | undefined): Promise<string> {
  if (override === undefined) return join(cache, 'kernel', `debian-v${kernelFormat}`)
  const file = await stat(override).catch(() => undefined)
  if (file === undefined || !file.isFile())
    throw new SetUpError(
      'kernel_unusable',
      `SPACE_KERNEL names ${override}, which is no file.`,
      'Name a linux-image .deb, or unset SPACE_KERNEL.',
    )
  const name = basename(override, '.deb').replaceAll(/[^\w.+-]/g, '_')
  return join(cache, 'kernel', `${name}-${file.size}-${Math.trunc(file.mtimeMs)}-v${kernelFormat}`)
}
