import { existsSync } from 'node:fs'
import { mkdtemp, open, readFile, rm, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { tryReflink } from '../host/descriptors.ts'
import { isErrno } from '../images/publish.ts'
import { bad, type Check, ok } from './check.ts'

const gib = 1024 ** 3
const neededDiskBytes = 3 * gib
const pleasantDiskBytes = 10 * gib
const neededMemoryBytes = 1.5 * gib
const pleasantMemoryBytes = 4 * gib

/** Disk below SPACE_HOME, and memory. */
export async function roomChecks(home: string): Promise<Check[]> {
  const folder = nearestFolder(home)
  return [await diskCheck(home, folder), await reflinkCheck(folder), await memoryCheck()]
}

async function diskCheck(home: string, folder: string): Promise<Check> {
  const filesystem = await statfs(folder)
  const freeBytes = filesystem.bavail * filesystem.bsize
  const detail = `${inGib(freeBytes)} GiB free for ${home}`
  const remedy = 'Free some space, or set SPACE_HOME to a folder on a larger disk.'
  if (freeBytes < neededDiskBytes) return bad('fail', 'disk', 'Disk', `${detail}; set-up needs 3`, remedy)
  if (freeBytes < pleasantDiskBytes)
    return bad('warn', 'disk', 'Disk', `${detail}; 10 leave room for sandboxes`, remedy)
  return ok('disk', 'Disk', detail)
}

async function reflinkCheck(folder: string): Promise<Check> {
  const title = 'Shared blocks'
  try {
    return (await canReflink(folder))
      ? ok('reflink', title, 'the filesystem shares blocks between files (reflink)')
      : ok(
          'reflink',
          title,
          'no reflink here: memory files are copied, which costs time when a sandbox is saved',
        )
  } catch (error) {
    if (!isErrno(error, 'EACCES', 'EPERM', 'EROFS')) throw error
    return bad('fail', 'reflink', title, `${folder} cannot be written`, 'Run as root, or set SPACE_HOME.')
  }
}

async function canReflink(folder: string): Promise<boolean> {
  const trial = await mkdtemp(join(folder, '.space-doctor-'))
  try {
    await using from = await open(join(trial, 'from'), 'w+')
    await using to = await open(join(trial, 'to'), 'w+')
    await from.writeFile(Buffer.alloc(4096, 1))
    await from.sync()
    return tryReflink(from.fd, to.fd)
  } finally {
    await rm(trial, { recursive: true, force: true })
  }
}

async function memoryCheck(): Promise<Check> {
  const available = /^MemAvailable:\s+(\d+) kB$/m.exec(await readFile('/proc/meminfo', 'utf8'))?.[1]
  const bytes = Number(available ?? 0) * 1024
  const detail = `${inGib(bytes)} GiB available`
  const remedy = 'End other programs, or use a machine with more memory.'
  if (bytes < neededMemoryBytes)
    return bad('fail', 'memory', 'Memory', `${detail}; a sandbox takes 1`, remedy)
  if (bytes < pleasantMemoryBytes) return bad('warn', 'memory', 'Memory', `${detail}; 4 are pleasant`, remedy)
  return ok('memory', 'Memory', detail)
}

/** The folder itself, or the nearest one above that exists. */
function nearestFolder(path: string): string {
  return existsSync(path) || path === '/' ? path : nearestFolder(dirname(path))
}

function inGib(bytes: number): string {
  return (bytes / gib).toFixed(1)
}
