/** From the request that creates a sandbox to the first byte its first command prints. */
import { BenchError } from '../errors.ts'
import type { Samples } from '../samples.ts'
import type { Bench } from './row.ts'
import { readyAhead } from './settle.ts'

const machinesAhead = Number(process.env['SPACE_READY_MACHINES'] || 2)

export const ids = ['create'] as const

/** One sandbox at a time; each finds a VMM started ahead. */
export async function run({ servers: { api, pid }, quick }: Bench): Promise<Samples[]> {
  const values: number[] = []
  for (let count = 0; count < (quick ? 3 : 20); count++) {
    await readyAhead(pid, machinesAhead)
    const startedAt = performance.now()
    const id = await api.create()
    const session = await api.command(id, ['/bin/echo', 'here'])
    let firstAt: number | undefined
    await api.events(session, (event) => {
      if (event.name === 'stdout') firstAt ??= event.atMs
    })
    if (firstAt === undefined) throw new BenchError('echo printed nothing.')
    values.push(firstAt - startedAt)
    await api.delete(id)
  }
  return [{ id: 'create', title: 'create → first output byte', unit: 'ms', values }]
}
