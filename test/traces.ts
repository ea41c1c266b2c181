/**
 * What SPACE may leave on a host: processes, namespaces, devices, mounts, cgroups, sockets, files and rows. Two
 * inventories of the same moment in a sandbox's life compare equal, or the difference names what leaked.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

export interface Traces {
  readonly vmms: number
  readonly namespaces: number
  readonly taps: number
  readonly mounts: number
  readonly cgroups: number
  readonly files: readonly string[]
  readonly sockets: number
  readonly descriptors: number
}

/** Counts what belongs to the SPACE of this home and its server; namespaces and cgroups are those of the host. */
export function traces(home: string, serverPid: number): Traces {
  return {
    vmms: vmmsOf(home).length,
    namespaces: ip(['netns', 'list']).length,
    taps: ip(['-o', 'link', 'show', 'type', 'tun']).length,
    mounts: readFileSync('/proc/self/mounts', 'utf8').split('\n').length,
    cgroups: cgroups().length,
    files: files(join(home, 'node', 'sandboxes')),
    sockets: readFileSync('/proc/net/unix', 'utf8')
      .split('\n')
      .filter((line) => line.includes(home)).length,
    descriptors: readdirSync(`/proc/${serverPid}/fd`).length,
  }
}

/** Process ids of the VMMs that hold a file of this home open or mapped. */
export function vmmsOf(home: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => isVmmOf(pid, home))
}

function isVmmOf(pid: number, home: string): boolean {
  try {
    if (!readlinkSync(`/proc/${pid}/exe`).includes('qemu-system')) return false
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith(home)
      } catch {
        return false
      }
    })
  } catch {
    return false
  }
}

/** Rows of every table of a database, without those that only remember (operations, keys, deleted sandboxes). */
export function rows(path: string): Record<string, number> {
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    const tables = database.prepare("select name from sqlite_master where type = 'table'").all()
    return Object.fromEntries(
      tables.map(({ name }) => [
        String(name),
        Number(database.prepare(`select count(*) as n from "${String(name)}"`).get()?.['n']),
      ]),
    )
  } finally {
    database.close()
  }
}

function ip(argv: readonly string[]): string[] {
  return spawnSync('ip', argv, { encoding: 'utf8' }).stdout.split('\n').filter(Boolean).sort()
}

function cgroups(): string[] {
  return spawnSync('find', ['/sys/fs/cgroup', '-type', 'd', '-path', '*space*'], { encoding: 'utf8' })
    .stdout.split('\n')
    .filter(Boolean)
    .sort()
}

function files(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true }).map(String).sort()
  } catch {
    return []
  }
}
