/**
 * Control groups of versions 1 and 2, also mixed: each of the three controllers is used where the host has it.
 * All groups lie under one parent, `space`, at the root of each hierarchy, so that no process stands between.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { readFile, rmdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { errorCode, HostError } from './host-error.ts'

export type Controller = 'memory' | 'cpu' | 'pids'
const controllers: readonly Controller[] = ['memory', 'cpu', 'pids']

/** Where a controller's groups are made: the mount point of its hierarchy, and which version that speaks. */
export interface ControllerMount {
  readonly controller: Controller
  readonly version: 1 | 2
  readonly mount: string
}

export interface CgroupLimits {
  readonly memoryBytes: number
  /** Cores' worth of time, e.g. 1.5. */
  readonly cpus: number
  /** Processes and threads. */
  readonly tasks: number
}

const parentName = 'space'
const cpuPeriodUs = 100_000

/** Finds the controllers of this host; `mounts` is the text of /proc/self/mounts. One that is nowhere is left out. */
export function findControllers(
  mounts: string,
  controllersOfV2: (mount: string) => string = readV2Controllers,
): ControllerMount[] {
  const lines = mounts.split('\n').map((line) => line.split(' '))
  return controllers.flatMap((controller): ControllerMount[] => {
    const v1 = lines.find(
      ([, , type, options]) => type === 'cgroup' && options?.split(',').includes(controller),
    )
    if (v1?.[1] !== undefined) return [{ controller, version: 1, mount: v1[1] }]
    const v2 = lines.find(([, , type]) => type === 'cgroup2')?.[1]
    if (v2 === undefined || !controllersOfV2(v2).split(/\s+/).includes(controller)) return []
    return [{ controller, version: 2, mount: v2 }]
  })
}

function readV2Controllers(mount: string): string {
  return readFileSync(join(mount, 'cgroup.controllers'), 'utf8')
}

/** The controllers of the host this process runs on. */
export function hostControllers(): ControllerMount[] {
  return findControllers(readFileSync('/proc/self/mounts', 'utf8'))
}

/** Folders of one group, each named once; what goes into a machine's record before the group is made. */
export function groupFolders(mounts: readonly ControllerMount[], name: string): string[] {
  return [...new Set(mounts.map(({ mount }) => join(mount, parentName, name)))]
}

/** Makes a group; EEXIST when one of that name is there. */
export function makeGroup(mounts: readonly ControllerMount[], name: string): void {
  for (const { mount, version } of mounts) {
    const parent = join(mount, parentName)
    mkdirSync(parent, { recursive: true })
    if (version === 2) delegate(mounts, [mount, parent])
  }
  for (const folder of groupFolders(mounts, name)) mkdirSync(folder)
  for (const { mount } of mounts) weigh(join(mount, parentName))
}

/**
 * Gives the parent as much weight as its groups together, one each: with the default it would have that of a single
 * process beside all others of the host, and on a busy host the sandboxes together would get the time of one.
 */
function weigh(parent: string): void {
  const groups = readdirSync(parent, { withFileTypes: true }).filter((entry) => entry.isDirectory()).length
  for (const [name, one, most] of [
    ['cpu.weight', 100, 10_000],
    ['cpu.shares', 1024, 262_144],
  ] as const) {
    const file = join(parent, name)
    if (existsSync(file)) writeFileSync(file, String(Math.min(most, one * Math.max(1, groups))))
  }
}

function delegate(mounts: readonly ControllerMount[], folders: readonly string[]): void {
  const wanted = mounts.filter(({ version }) => version === 2).map(({ controller }) => controller)
  for (const folder of folders) {
    const file = join(folder, 'cgroup.subtree_control')
    const present = readFileSync(file, 'utf8').split(/\s+/)
    const missing = wanted.filter((controller) => !present.includes(controller))
    if (missing.length > 0) writeFileSync(file, missing.map((controller) => `+${controller}`).join(' '))
  }
}

/** What is written where for a group's limits, as data. */
export function limitWrites(
  mounts: readonly ControllerMount[],
  name: string,
  limits: CgroupLimits,
): [string, string][] {
  const quotaUs = Math.round(limits.cpus * cpuPeriodUs)
  return mounts.flatMap(({ controller, version, mount }): [string, string][] => {
    const file = (leaf: string): string => join(mount, parentName, name, leaf)
    if (controller === 'pids') return [[file('pids.max'), String(limits.tasks)]]
    if (controller === 'memory')
      return [[file(version === 1 ? 'memory.limit_in_bytes' : 'memory.max'), String(limits.memoryBytes)]]
    if (version === 2) return [[file('cpu.max'), `${quotaUs} ${cpuPeriodUs}`]]
    return [
      [file('cpu.cfs_period_us'), String(cpuPeriodUs)],
      [file('cpu.cfs_quota_us'), String(quotaUs)],
    ]
  })
}

/** Sets a group's limits. */
export async function limitGroup(
  mounts: readonly ControllerMount[],
  name: string,
  limits: CgroupLimits,
): Promise<void> {
  for (const [file, value] of limitWrites(mounts, name, limits)) await writeFile(file, value)
}

/** Moves a process with all its threads into a group. Off the main thread: the kernel may wait for all cores. */
export async function joinGroup(folders: readonly string[], pid: number): Promise<void> {
  await Promise.all(folders.map((folder) => writeFile(join(folder, 'cgroup.procs'), String(pid))))
}

/** Pids in a group now. */
export async function groupMembers(folders: readonly string[]): Promise<number[]> {
  const texts = await Promise.all(
    folders.map((folder) => readFile(join(folder, 'cgroup.procs'), 'utf8').catch(() => '')),
  )
  return [...new Set(texts.flatMap((text) => text.split('\n').filter(Boolean).map(Number)))]
}

/** Removes a group whose processes have ended or are about to; fine when it is gone. `busy` after five seconds. */
export async function removeGroup(folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    await removeFolder(folder)
    if (existsSync(dirname(folder))) weigh(dirname(folder))
  }
}

async function removeFolder(folder: string): Promise<void> {
  for (let waitedMs = 0; waitedMs <= 5_000; waitedMs += 20) {
    try {
      await rmdir(folder)
      return
    } catch (error) {
      if (errorCode(error) === 'ENOENT' || !existsSync(folder)) return
      if (errorCode(error) !== 'EBUSY') throw error
    }
    await sleep(20)
  }
  throw new HostError('rmdir cgroup', 'busy', folder)
}
