/**
 * One server a SPACE_HOME. The lock is a lock of the kernel on a small SQLite file, so it ends with the process that
 * holds it, however that ends; who holds it stands in a file beside it, which only tells and never decides.
 */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { CliFailure } from '../failure.ts'

/** What the holder of the lock says about itself. */
export interface Instance {
  readonly pid: number
  readonly apiUrl: string
  readonly startedAt: string
}

export interface InstanceLock extends AsyncDisposable {
  /** Tells others who holds the lock. */
  announce(instance: Instance): Promise<void>
}

/** The folder of sockets, lock and log of the serving process. */
export function runFolder(home: string): string {
  return join(home, 'run')
}

/** Takes the lock, or returns undefined when another process holds it. */
export async function tryLock(home: string): Promise<InstanceLock | undefined> {
  const folder = runFolder(home)
  try {
    await mkdir(home, { recursive: true, mode: 0o700 })
    await mkdir(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new CliFailure(`${home} cannot be used (${error instanceof Error ? error.message : error})`, {
      remedy: 'run as root, or name a folder you can write by SPACE_HOME',
      cause: error,
    })
  }
  const database = new DatabaseSync(join(folder, 'lock'), { timeout: 0 })
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if (isBusy(error)) return undefined
    throw error
  }
  const path = instancePath(home)
  return {
    async announce(instance) {
      await writeFile(`${path}.tmp`, JSON.stringify(instance), { mode: 0o600 })
      await rename(`${path}.tmp`, path)
    },
    async [Symbol.asyncDispose]() {
      await rm(path, { force: true })
      if (database.isOpen) database.close()
    },
  }
}

/** Takes the lock, or throws saying who holds it. */
export async function lockOrFail(home: string): Promise<InstanceLock> {
  const lock = await tryLock(home)
  if (lock !== undefined) return lock
  const holder = await readInstance(home)
  const who =
    holder === undefined ? '' : ` (pid ${holder.pid}, at ${holder.apiUrl}, since ${holder.startedAt})`
  throw new CliFailure(`SPACE runs already with ${home}${who}`, {
    code: 'already_running',
    remedy: 'use it as it is, end it with `space down`, or set SPACE_HOME for a second one',
  })
}

/** Who holds the lock by its own account; undefined when that is not known. */
export async function readInstance(home: string): Promise<Instance | undefined> {
  try {
    const value = JSON.parse(await readFile(instancePath(home), 'utf8')) as Partial<Instance>
    const { pid, apiUrl, startedAt } = value
    if (typeof pid !== 'number' || typeof apiUrl !== 'string' || typeof startedAt !== 'string')
      return undefined
    return { pid, apiUrl, startedAt }
  } catch {
    return undefined
  }
}

function instancePath(home: string): string {
  return join(runFolder(home), 'server.json')
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && (error.errcode === 5 || error.errcode === 261)
}
