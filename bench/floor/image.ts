/** Finds the guest image and the `base` template in a SPACE_HOME, by the files that lie there alone. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { FloorError } from './errors.ts'

export interface Image {
  readonly vmlinux: string
  readonly initramfs: string
  readonly modulesDrive: string
  /** Raw ext4, 8 GiB, never written. */
  readonly root: string
  /** The measured rate of the time stamp counter, for the guest's clock. */
  readonly tscKhz: number
}

const remedy = 'run `npm start` once, or set SPACE_HOME to a home that is set up.'

/** The current guest image and the newest template. */
export async function findImage(home: string): Promise<Image> {
  const images = join(home, 'node', 'images')
  const folder = join(images, String((await readObject(join(images, 'current.json')))['digest']))
  const names = await readdir(folder)
  const named = (start: string): string => {
    const name = names.find((each) => each.startsWith(start))
    if (!name) throw new FloorError(`The guest image in ${folder} has no ${start}: ${remedy}`)
    return join(folder, name)
  }
  const tscKhz = (await readObject(join(images, 'host.json')))['tscKhz']
  if (typeof tscKhz !== 'number') throw new FloorError(`${images}/host.json has no tscKhz: ${remedy}`)
  return {
    vmlinux: named('vmlinux'),
    initramfs: named('initramfs'),
    modulesDrive: named('modules.'),
    root: await newestRoot(join(home, 'node', 'templates')),
    tscKhz,
  }
}

async function newestRoot(templates: string): Promise<string> {
  const found: { path: string; atMs: number }[] = []
  for (const name of await readdir(templates).catch(() => [])) {
    const path = join(templates, name, 'root.ext4')
    const facts = await stat(path).catch(() => undefined)
    if (facts) found.push({ path, atMs: facts.mtimeMs })
  }
  const newest = found.sort((a, b) => b.atMs - a.atMs)[0]
  if (!newest) throw new FloorError(`There is no template in ${templates}: ${remedy}`)
  return newest.path
}

async function readObject(path: string): Promise<Record<string, unknown>> {
  const text = await readFile(path, 'utf8').catch(() => undefined)
  if (text === undefined) throw new FloorError(`${path} is not there: ${remedy}`)
  return JSON.parse(text) as Record<string, unknown>
}
