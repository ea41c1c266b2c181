/**
 * A base snapshot: a template booted once in a shape and kept, so that a create is a restore. Made while the machine
 * belongs to nobody; the one secret in its memory is the one that announces the next handshake of the guest channel.
 *
 *   templates/<hex>/bases/<vcpus>x<memory MiB>/memory · devices · disk.qcow2 · manifest.json
 */
import { lstat, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { publishJson, readJson } from '../images/publish.ts'
import type { MachineSnapshot, Shape, SnapshotIdentity } from '../machines/machine.ts'

export interface BaseSnapshot {
  readonly folder: string
  readonly snapshot: MachineSnapshot
  /** The frozen layer over the template's image, of the same instant as the memory. */
  readonly disk: string
  readonly linkSecret: Uint8Array
}

/** One file of a base, as it was when it was made. */
export interface FileFact {
  readonly name: string
  readonly bytes: number
  /** Over the chunks that are not all zeros. */
  readonly sha256: string
}

export interface BaseManifest {
  readonly version: 1
  readonly templateDigest: string
  readonly identity: SnapshotIdentity
  readonly agentBuild: string
  readonly linkSecret: string
  readonly files: readonly FileFact[]
  readonly madeAtMs: number
}

export const baseFiles = {
  memory: 'memory',
  devices: 'devices',
  disk: 'disk.qcow2',
  manifest: 'manifest.json',
} as const

const makingMark = '.making-'
const goneMark = '.gone-'

/** The folder of all bases of a template. */
export function basesFolder(templateFolder: string): string {
  return join(templateFolder, 'bases')
}

export function shapeName(shape: Shape): string {
  return `${shape.vcpus}x${shape.memoryMib}`
}

/** The shape a folder is named by. */
export function parseShapeName(name: string): Shape | undefined {
  const match = /^(\d{1,3})x(\d{1,7})$/.exec(name)
  return match === null ? undefined : { vcpus: Number(match[1]), memoryMib: Number(match[2]) }
}

/** Why a base could not be used, for the log and for who decides to make it anew. */
export type BaseLookup =
  | { readonly kind: 'usable'; readonly base: BaseSnapshot }
  | { readonly kind: 'missing' }
  | { readonly kind: 'unusable'; readonly why: string }

/** Finds the base of a shape and checks its manifest: files complete, of this template, restorable here. */
export async function findBase(
  templateFolder: string,
  templateDigest: string,
  shape: Shape,
  refuses: (identity: SnapshotIdentity) => string | undefined,
): Promise<BaseLookup> {
  const folder = join(basesFolder(templateFolder), shapeName(shape))
  const manifest = parseManifest(await readJson(join(folder, baseFiles.manifest)))
  if (manifest === undefined) return { kind: 'missing' }
  if (manifest.templateDigest !== templateDigest)
    return { kind: 'unusable', why: 'it is of another template' }
  const refused = refuses(manifest.identity)
  if (refused !== undefined) return { kind: 'unusable', why: refused }
  for (const fact of manifest.files) {
    const size = (await stat(join(folder, fact.name)).catch(() => undefined))?.size
    if (size !== fact.bytes)
      return { kind: 'unusable', why: `${fact.name} has ${size ?? 'no'} bytes, not ${fact.bytes}` }
  }
  const snapshot = {
    memory: join(folder, baseFiles.memory),
    devices: join(folder, baseFiles.devices),
    identity: manifest.identity,
  }
  const linkSecret = Buffer.from(manifest.linkSecret, 'hex')
  return { kind: 'usable', base: { folder, snapshot, disk: join(folder, baseFiles.disk), linkSecret } }
}

/** Bases made for another guest image: nothing can restore them any more. */
export async function listForeignBases(templateFolder: string, guestImageDigest: string): Promise<Shape[]> {
  const folder = basesFolder(templateFolder)
  const foreign: Shape[] = []
  // A folder that is a link belongs to another home too.
  if ((await lstat(folder).catch(() => undefined))?.isDirectory() !== true) return foreign
  for (const shape of await listBases(templateFolder)) {
    const manifest = parseManifest(await readJson(join(folder, shapeName(shape), baseFiles.manifest)))
    if (manifest !== undefined && manifest.identity.guestImageDigest !== guestImageDigest) foreign.push(shape)
  }
  return foreign
}

function parseManifest(value: unknown): BaseManifest | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const manifest = value as Partial<BaseManifest>
  const whole =
    manifest.version === 1 &&
    typeof manifest.templateDigest === 'string' &&
    typeof manifest.identity === 'object' &&
    typeof manifest.linkSecret === 'string' &&
    Array.isArray(manifest.files)
  return whole ? (manifest as BaseManifest) : undefined
}

/** Where a base is made before it takes its place. */
export function makingFolder(templateFolder: string, shape: Shape, unique: string): string {
  return join(basesFolder(templateFolder), `${makingMark}${shapeName(shape)}-${unique}`)
}

/** Gives a made base its place; one that was there goes. Machines that use it keep what they have open. */
export async function placeBase(
  making: string,
  templateFolder: string,
  shape: Shape,
  manifest: BaseManifest,
): Promise<void> {
  await publishJson(join(making, baseFiles.manifest), manifest)
  const place = join(basesFolder(templateFolder), shapeName(shape))
  await removeBase(place)
  await rename(making, place)
}

/** Removes a base so that nobody finds half of one. */
export async function removeBase(place: string): Promise<void> {
  const gone = join(place, '..', `${goneMark}${process.pid}-${Date.now()}`)
  try {
    await rename(place, gone)
  } catch {
    // There was none.
    return
  }
  await rm(gone, { recursive: true, force: true })
}

/** Notes that a base was used, for who has to go when there are too many. */
export async function touchBase(base: BaseSnapshot, nowMs: number): Promise<void> {
  const seconds = nowMs / 1000
  await utimes(base.folder, seconds, seconds).catch(() => undefined)
}

/** Shapes that have a base, most recently used first. */
export async function listBases(templateFolder: string): Promise<Shape[]> {
  const folder = basesFolder(templateFolder)
  const found: { readonly shape: Shape; readonly usedAtMs: number }[] = []
  for (const name of await readdir(folder).catch(() => [])) {
    const shape = parseShapeName(name)
    if (shape === undefined) continue
    const facts = await stat(join(folder, name)).catch(() => undefined)
    if (facts !== undefined) found.push({ shape, usedAtMs: facts.mtimeMs })
  }
  return found.sort((a, b) => b.usedAtMs - a.usedAtMs).map(({ shape }) => shape)
}

/** Folders that an interrupted run left: half made, or half removed. */
export async function listLeftovers(templateFolder: string): Promise<string[]> {
  const folder = basesFolder(templateFolder)
  const names = await readdir(folder).catch(() => [])
  return names
    .filter((name) => name.startsWith(makingMark) || name.startsWith(goneMark))
    .map((name) => join(folder, name))
}
