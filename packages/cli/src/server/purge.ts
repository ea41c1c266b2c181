import { readdir, readFile, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readConfig } from '../settings/config-file.ts'
import type { Settings } from '../settings/settings.ts'

export interface Purged {
  readonly removed: readonly string[]
  readonly left: readonly string[]
}

/** What lies directly in SPACE_HOME; anything else there is somebody else's and stays. */
const parts = ['control', 'node', 'run'] as const

/** The clone this runs from. */
const clone = fileURLToPath(new URL('../../../../', import.meta.url))

/**
 * Removes what SPACE made on this machine; nothing of it may run any more. Returns what is gone and what stays, in
 * words for a person. `shared` are folders of the host that go when they are empty.
 */
export async function purge(settings: Settings, shared: readonly string[]): Promise<Purged> {
  const removed: string[] = []
  const left: string[] = []
  for (const part of parts) await rm(join(settings.home, part), { recursive: true, force: true })
  if (await removeEmpty(settings.home)) removed.push(settings.home)
  else if ((await readdir(settings.home).catch(() => [])).length > 0)
    left.push(`${settings.home}, which holds files SPACE did not make`)
  else removed.push(`everything in ${settings.home}`)
  const config = await readConfig(settings.configPath).catch(() => undefined)
  if (config !== undefined && new URL(config.apiUrl).origin === settings.apiUrl.origin) {
    await rm(settings.configPath, { force: true })
    await removeEmpty(dirname(settings.configPath))
    removed.push(settings.configPath)
  }
  for (const folder of shared) if (await removeEmpty(folder)) removed.push(folder)
  left.push(
    'system packages that the set-up installed through apt (qemu-system-x86, qemu-utils, mmdebstrap, nftables, …)',
    `this clone with its npm packages: ${clone}`,
  )
  return { removed, left }
}

/** Folders shared by every SPACE of a host; they go with the last one, since only empty ones are removed. */
export async function sharedFolders(): Promise<string[]> {
  const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n').map((line) => line.split(' '))
  const groups = mounts.flatMap(([, mount, type]) =>
    mount && /^cgroup2?$/.test(type ?? '') ? [join(mount, 'space')] : [],
  )
  return ['/run/space/slots', '/run/space', ...groups]
}

async function removeEmpty(folder: string): Promise<boolean> {
  try {
    await rmdir(folder)
    return true
  } catch {
    return false
  }
}
