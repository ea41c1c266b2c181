/**
 * How a finished thing appears: made under another name beside its place, synced, then renamed. Whoever looks sees
 * nothing or all of it, also after a crash or an interrupt; what an interrupted run left is removed by the next.
 */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { SetUpError } from './errors.ts'

const temporaryMark = '.making-'

/** Writes a file so that it is there whole or not at all. */
export async function publishFile(path: string, content: string | Uint8Array, mode = 0o600): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const temporary = temporaryName(path)
  try {
    const file = await open(temporary, 'wx', mode)
    try {
      await file.writeFile(content)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(temporary, path)
  } finally {
    await rm(temporary, { force: true })
  }
  await syncPath(dirname(path))
}

/** Writes a value as JSON, whole or not at all. */
export async function publishJson(path: string, value: unknown): Promise<void> {
  await publishFile(path, `${JSON.stringify(value, undefined, 2)}\n`)
}

/**
 * Makes a folder: `fill` gets an empty one, and when it returns, its files are synced and the folder takes its place.
 * A folder that is already there wins, since what this code publishes is named by its content.
 */
export async function publishFolder<T>(path: string, fill: (folder: string) => Promise<T>): Promise<T> {
  return await withWorkFolder(dirname(path), basename(path), async (temporary) => {
    const result = await fill(temporary)
    for (const name of await readdir(temporary, { recursive: true })) await syncPath(join(temporary, name))
    await syncPath(temporary)
    try {
      await rename(temporary, path)
    } catch (error) {
      if (!isErrno(error, 'ENOTEMPTY', 'EEXIST')) throw error
    }
    await syncPath(dirname(path))
    return result
  })
}

/** Gives `use` an empty folder in `parent` and removes it afterwards, as it does those of processes that are gone. */
export async function withWorkFolder<T>(
  parent: string,
  name: string,
  use: (folder: string) => Promise<T>,
): Promise<T> {
  await mkdir(parent, { recursive: true, mode: 0o700 })
  for (const left of await readdir(parent))
    if (left.startsWith(temporaryMark) && !ownerIsAlive(left)) await removeFolder(join(parent, left))
  const folder = temporaryName(join(parent, name))
  await mkdir(folder, { mode: 0o700 })
  try {
    return await use(folder)
  } finally {
    await removeFolder(folder)
  }
}

/** Removes a folder with all in it, unless something is mounted there: then it would be the host that is emptied. */
export async function removeFolder(folder: string): Promise<void> {
  const mounts = await readFile('/proc/self/mountinfo', 'utf8')
  const within = mounts.split('\n').find((line) => `${line.split(' ')[4]}/`.startsWith(`${folder}/`))
  if (within !== undefined)
    throw new SetUpError(
      'host_unsupported',
      `Something is mounted in ${folder}, so it is not removed.`,
      `umount ${within.split(' ')[4]}`,
    )
  await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
}

/** The parsed content of a JSON file, or undefined when it is not there. */
export async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'))
  } catch (error) {
    if (isErrno(error, 'ENOENT') || error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Whether a caught value is a system error with one of these names. */
export function isErrno(error: unknown, ...names: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && names.includes(String(error.code))
}

/** Flushes a file or a folder to the disk. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function temporaryName(path: string): string {
  return join(
    dirname(path),
    `${temporaryMark}${basename(path)}-${process.pid}-${randomBytes(4).toString('hex')}`,
  )
}

function ownerIsAlive(temporary: string): boolean {
  return existsSync(`/proc/${temporary.split('-').at(-2)}`)
}
