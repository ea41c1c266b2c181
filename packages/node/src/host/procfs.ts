/** What the kernel says about a process. A pid means something only together with its start time. */

import { readFileSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { errorCode } from './host-error.ts'

/** `sysconf(_SC_CLK_TCK)` of x86-64 Linux: the unit of the times in /proc/PID/stat. */
export const ticksPerSecond = 100

export interface ProcessStat {
  /** One letter; `Z` and `X` are dead. */
  readonly state: string
  readonly processGroup: number
  readonly session: number
  /** User and system time of all threads, in ticks. */
  readonly cpuTicks: number
  /** Ticks since the host's boot; with the pid, the identity of the process. */
  readonly startTicks: number
}

/** Parses /proc/PID/stat; the name in parentheses may hold anything. undefined when the text is not one. */
export function parseStat(text: string): ProcessStat | undefined {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const number = (index: number): number => Number(fields[index - 3])
  const state = fields[0]
  if (state === undefined || fields.length < 20) return undefined
  const startTicks = number(22)
  if (!Number.isSafeInteger(startTicks)) return undefined
  return {
    state,
    processGroup: number(5),
    session: number(6),
    cpuTicks: number(14) + number(15),
    startTicks,
  }
}

/** The stat of a process, or undefined when there is none of that pid. */
export function readStat(pid: number): ProcessStat | undefined {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ESRCH') return undefined
    throw error
  }
}

export interface MappedRange {
  readonly start: number
  readonly end: number
  /** Offset in the mapped file of the first byte. */
  readonly fileOffset: number
  readonly device: string
  readonly inode: number
}

/** The private writable mappings of one file in /proc/PID/maps, in order of address. */
export function parseMaps(text: string, inode: number): MappedRange[] {
  const result: MappedRange[] = []
  for (const line of text.split('\n')) {
    const match = /^([0-9a-f]{1,16})-([0-9a-f]{1,16}) rw.p ([0-9a-f]{1,16}) ([0-9a-f:]+) (\d+)/.exec(line)
    if (match === null || Number(match[5]) !== inode) continue
    const [, start = '', end = '', offset = '', device = ''] = match
    result.push({
      start: Number.parseInt(start, 16),
      end: Number.parseInt(end, 16),
      fileOffset: Number.parseInt(offset, 16),
      device,
      inode,
    })
  }
  return result
}

/** Proportional set size of a process in bytes: memory shared by n processes counts one n-th. 0 when it is gone. */
export async function proportionalBytes(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '')
  return Number(/^Pss:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0) * 1024
}

/** Pids of all live processes of one uid. */
export async function processesOf(uid: number): Promise<number[]> {
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const owned = await Promise.all(
    names.map(async (name) => {
      const info = await stat(`/proc/${name}`).catch(() => undefined)
      return info?.uid === uid && readStat(Number(name))?.state !== 'Z'
    }),
  )
  return names.filter((_, index) => owned[index]).map(Number)
}
