/** What /proc says about the servers and the VMMs of one home: who they are, their memory, their CPU time. */
import { readdir, readFile, readlink } from 'node:fs/promises'

/** Clock ticks of /proc/PID/stat: 100 a second on every Linux SPACE runs on. */
const ticksPerSecond = 100
const kibiPerMebi = 1024

/** The VMMs that hold a file of a sandbox in this home open. */
export async function machinesOf(home: string): Promise<number[]> {
  const found: number[] = []
  for (const name of await readdir('/proc')) {
    const pid = Number(name)
    if (!Number.isInteger(pid) || !(await isVmm(pid))) continue
    if (await holdsFileUnder(pid, `${home}/`)) found.push(pid)
  }
  return found
}

/** VMMs whose parent is `pid`: those started ahead and those handed out since that process started. */
export async function vmmChildrenOf(pid: number): Promise<number> {
  let count = 0
  for (const name of await readdir('/proc')) {
    const child = Number(name)
    if (!Number.isInteger(child)) continue
    const stat = await readFile(`/proc/${child}/stat`, 'utf8').catch(() => '')
    if (Number(afterName(stat)[1]) === pid && (await isVmm(child))) count++
  }
  return count
}

/** Proportional set size in MiB: pages shared by many count once over all of them. */
export async function proportionalMib(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '')
  return Number(/^Pss:\s+(\d+) kB$/m.exec(text)?.[1] ?? Number.NaN) / kibiPerMebi
}

/** Resident set size in MiB. */
export async function residentMib(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(text)?.[1] ?? Number.NaN) / kibiPerMebi
}

/** CPU seconds these processes have used so far; one that is gone counts nothing. */
export async function cpuSeconds(pids: readonly number[]): Promise<number> {
  let ticks = 0
  for (const pid of pids) {
    const fields = afterName(await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ''))
    ticks += Number(fields[11] ?? 0) + Number(fields[12] ?? 0)
  }
  return ticks / ticksPerSecond
}

/** Ends VMMs that are still there when the servers failed to end them. */
export async function endMachines(home: string): Promise<void> {
  for (const pid of await machinesOf(home)) {
    process.stderr.write(`bench: VMM ${pid} was left and is ended.\n`)
    process.kill(pid, 'SIGKILL')
  }
}

async function isVmm(pid: number): Promise<boolean> {
  const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')
  return name.startsWith('qemu-system') || name.startsWith('firecracker')
}

async function holdsFileUnder(pid: number, prefix: string): Promise<boolean> {
  const folder = `/proc/${pid}/fd`
  for (const name of await readdir(folder).catch(() => [])) {
    const target = await readlink(`${folder}/${name}`).catch(() => '')
    if (target.startsWith(prefix)) return true
  }
  return false
}

/** The fields of /proc/PID/stat behind the name, which may hold spaces; [0] is the state, [1] the parent. */
function afterName(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}
