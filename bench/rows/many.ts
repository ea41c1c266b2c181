/**
 * Twenty sandboxes at once: the burst that creates them, what they cost while idle, and a restart of the servers under
 * them.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { burstSize } from '../figures.ts'
import { cpuSeconds, machinesOf, proportionalMib, residentMib } from '../processes.ts'
import type { Samples } from '../samples.ts'
import type { Bench } from './row.ts'
import { readyAhead } from './settle.ts'

export const ids = [
  'burst',
  'idle-memory',
  'idle-cpu',
  'node-memory',
  'restart-serving',
  'restart-adopted',
] as const

/** The sandboxes are made once and serve every row; they are deleted at the end. */
export async function run(bench: Bench): Promise<Samples[]> {
  const size = bench.quick ? 4 : burstSize
  await readyAhead(bench.servers.pid, 2)
  const serversBefore = await residentMib(bench.servers.pid)
  bench.progress(`${size} creates at once …`)
  const startedAt = performance.now()
  const made = await Promise.all(
    Array.from({ length: size }, async () => {
      const id = await bench.servers.api.createRunning()
      await bench.servers.api.exec(id, ['/bin/true'])
      return id
    }),
  )
  const burstMs = performance.now() - startedAt
  const rows: Samples[] = []
  // A quick burst is scaled to the full size, so that it stands beside the same floor.
  const scaled = (burstMs / size) * burstSize
  rows.push({ id: 'burst', title: `burst: ${burstSize} creates at once`, unit: 's', values: [scaled / 1000] })
  rows.push(...(await idleRows(bench, size, serversBefore)))
  rows.push(...(await restartRows(bench, made)))
  bench.progress(`deleting ${size} sandboxes …`)
  const { api } = bench.servers
  await Promise.all(made.map(async (id) => await api.delete(id)))
  return rows
}

async function idleRows(bench: Bench, size: number, serversBefore: number): Promise<Samples[]> {
  const { home, pid } = bench.servers
  const settleMs = bench.quick ? 2_000 : 15_000
  const windowMs = bench.quick ? 5_000 : 60_000
  bench.progress(`idle for ${Math.round((settleMs + windowMs) / 1000)} s …`)
  await delay(settleMs)
  const machines = await machinesOf(home)
  const watched = [...machines, pid]
  const cpuBefore = await cpuSeconds(watched)
  const startedAt = performance.now()
  await delay(windowMs)
  const seconds = (performance.now() - startedAt) / 1000
  const cpu = (await cpuSeconds(watched)) - cpuBefore
  const memory: number[] = []
  for (const machine of machines) memory.push(await proportionalMib(machine))
  const serversGrew = (await residentMib(pid)) - serversBefore
  return [
    { id: 'idle-memory', title: 'memory of its own per idle machine (PSS)', unit: 'MiB', values: memory },
    {
      id: 'idle-cpu',
      title: 'idle CPU per sandbox, servers included',
      unit: '% of a core',
      values: [(cpu / seconds / size) * 100],
    },
    {
      id: 'node-memory',
      title: 'servers per idle sandbox, resident',
      unit: 'MiB',
      values: [Math.max(0, serversGrew) / size],
    },
  ]
}

async function restartRows(bench: Bench, made: readonly string[]): Promise<Samples[]> {
  const serving: number[] = []
  const adopted: number[] = []
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    bench.progress(`servers ended by ${signal} and started again …`)
    const { api, servingMs, startedAt } = await bench.restart(signal)
    serving.push(servingMs / 1000)
    await Promise.all(made.map(async (id) => await api.exec(id, ['/bin/true'])))
    adopted.push((performance.now() - startedAt) / 1000)
  }
  return [
    { id: 'restart-serving', title: 'restart: serving again', unit: 's', values: serving },
    { id: 'restart-adopted', title: 'restart: every sandbox answers', unit: 's', values: adopted },
  ]
}
