/**
 * What a node may forget at its start: guest images, template releases and builds of the agent that nothing uses.
 *
 *   images/<digest>      kept: the current one, those of sandboxes
 *   templates/<hex>      kept: tagged ones, those of sandboxes
 *   cache/agent/<key>    kept: the current image's, the one of the sources as they are now
 *
 * A finished thing lies in its place a moment before `current.json` or a tag names it, so what is young stays. Folders
 * shared with another home (symbolic links) are not ours alone: then nothing goes.
 */
import { lstat, readdir, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { DiskChain, GuestImage } from '../machines/machine.ts'
import { agentKey } from './agent.ts'
import { parseCurrent } from './guest-image.ts'
import { imagePaths, projectRoot, type SpaceHome } from './paths.ts'
import { isErrno, readJson, removeFolder } from './publish.ts'
import type { Template, TemplateStore } from './template-store.ts'

/** What one sandbox needs of this host. */
export interface SandboxNeeds {
  readonly templateDigest: string
  readonly guestImage: GuestImage
  readonly disk: DiskChain
}

export interface PruneOptions extends SpaceHome {
  readonly templates: Pick<TemplateStore, 'list' | 'remove'>
  /** The image this node boots machines with. */
  readonly guestImage: GuestImage
  /** Of every sandbox there is, whatever became of it. */
  readonly sandboxes: readonly SandboxNeeds[]
  readonly nowMs: number
  /** Told of each thing that went. */
  readonly onRemoved: (kind: 'guest_image' | 'template' | 'agent', name: string) => void
  /** Sources of the agent; the project's own by default. */
  readonly guestFolder?: string
}

/** Something this young may be waiting for its name. */
const nameWaitMs = 60 * 60 * 1000
/** A build under way is younger than this. */
const makingMs = 24 * 60 * 60 * 1000

/** Removes what nothing uses. Gives the releases that are left and ours, or undefined when the folders are shared. */
export async function prune(options: PruneOptions): Promise<Template[] | undefined> {
  const paths = imagePaths(options)
  const shared = await Promise.all([paths.images, paths.templates, paths.cache].map(isShared))
  if (shared.includes(true)) return undefined
  const current = parseCurrent(await readJson(paths.currentImage))
  // Without a current image a set-up is not finished, and knows better what it needs.
  if (current !== undefined) {
    await pruneImages(paths.images, current.digest, options)
    await pruneAgents(join(paths.cache, 'agent'), current.agent, options)
  }
  return await pruneTemplates(paths.templates, options)
}

async function pruneImages(images: string, current: string, options: PruneOptions): Promise<void> {
  const used = [options.guestImage, ...options.sandboxes.map(({ guestImage }) => guestImage)]
  const kept = new Set([current, ...used.flatMap(imageNames)])
  for (const name of await foldersOf(images)) {
    if (!/^[0-9a-f]{64}$/.test(name) || kept.has(name)) continue
    const folder = join(images, name)
    if ((await ageMs(folder, options.nowMs)) < nameWaitMs) continue
    await removeFolder(folder)
    options.onRemoved('guest_image', name)
  }
}

/** Names of the folders an image's files lie in; they count whatever path led there. */
function imageNames({ digest, vmlinux, initramfs, modulesDrive }: GuestImage): string[] {
  const folders = [vmlinux, initramfs, modulesDrive].map((path) => basename(dirname(path)))
  return [digest.replace(/^sha256:/, ''), ...folders]
}

async function pruneTemplates(folder: string, options: PruneOptions): Promise<Template[]> {
  const used = new Set(options.sandboxes.map(({ templateDigest }) => templateDigest))
  const parts = options.sandboxes.flatMap(({ disk }) =>
    [disk.base, ...disk.frozen, disk.writable].flatMap(split),
  )
  const inDisks = new Set(parts)
  const left: Template[] = []
  for (const template of await options.templates.list()) {
    if (dirname(template.folder) !== folder || (await isShared(template.folder))) continue
    const needed =
      template.tags.length > 0 || used.has(template.digest) || inDisks.has(basename(template.folder))
    if (needed || (await ageMs(template.folder, options.nowMs)) < nameWaitMs) {
      left.push(template)
      continue
    }
    await options.templates.remove(template.digest)
    options.onRemoved('template', template.digest)
  }
  return left
}

function split(path: string): string[] {
  return path.split('/')
}

async function pruneAgents(folder: string, current: string, options: PruneOptions): Promise<void> {
  if (await isShared(folder)) return
  const guest = options.guestFolder ?? join(projectRoot, 'guest')
  const next = await agentKey(guest)
  for (const name of await namesOf(folder)) {
    if (name === current || name === next) continue
    const making = name.startsWith('.') || name.includes('.making-')
    if (!making && !/^[0-9a-f]{16}$/.test(name)) continue
    const path = join(folder, name)
    if ((await ageMs(path, options.nowMs)) < (making ? makingMs : nameWaitMs)) continue
    await rm(path, { recursive: true, force: true })
    options.onRemoved('agent', name)
  }
}

/** Whether a path leads elsewhere. */
async function isShared(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink()
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false
    throw error
  }
}

/** Since the last name in it was made, or the file was written. */
async function ageMs(path: string, nowMs: number): Promise<number> {
  return nowMs - (await lstat(path)).mtimeMs
}

async function namesOf(folder: string): Promise<string[]> {
  return await readdir(folder).catch((error: unknown) => {
    if (isErrno(error, 'ENOENT')) return []
    throw error
  })
}

/** Real folders in a folder: not links to some. */
async function foldersOf(folder: string): Promise<string[]> {
  const names = await namesOf(folder)
  const real = await Promise.all(names.map(async (name) => (await lstat(join(folder, name))).isDirectory()))
  return names.filter((_, index) => real[index])
}
