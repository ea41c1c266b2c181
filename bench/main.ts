/**
 * `npm run bench`: the floors and the product's rows, measured in one run on this machine.
 *
 *   npm run bench -- [--only=row,…] [--quick] [--json] [--report]
 *
 * Exit code 0 means that everything was measured, also where a row misses its figure; 1 means that it was not. SPACE_HOME
 * is a home that is set up (default /var/lib/space-dev, else /var/lib/space); nothing in it is changed.
 */
import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { runEnvironment } from './environment.ts'
import { BenchError } from './errors.ts'
import { figures } from './figures.ts'
import { measureFloors } from './floors.ts'
import { writeReport } from './report.ts'
import * as command from './rows/command.ts'
import * as create from './rows/create.ts'
import * as fake from './rows/fake.ts'
import * as many from './rows/many.ts'
import type { Bench, RowGroup } from './rows/row.ts'
import type { Samples } from './samples.ts'
import { type Stack, stack } from './servers.ts'
import { results, textTable } from './table.ts'

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    report: { type: 'boolean', default: false },
  },
})
const groups: readonly RowGroup[] = [create, command, many]
const wanted = options.only?.split(',')
const source = process.env['SPACE_HOME'] || firstThere('/var/lib/space-dev', '/var/lib/space')

let used: Stack | undefined

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void interrupted())
try {
  await bench()
} catch (error) {
  progress(error instanceof BenchError ? error.message : String(error instanceof Error ? error.stack : error))
  process.exit(1)
}

async function bench(): Promise<void> {
  const environment = await runEnvironment()
  if (environment.load > environment.cores / 2)
    progress(
      `the host is busy (load ${environment.load.toFixed(1)}, ${environment.cores} cores): the figures will say little.`,
    )
  const asked = groups.filter(({ ids }) => ids.some(wants))
  const floors: Samples[] = []
  const rows: Samples[] = []
  if (asked.length > 0 || wants('setup-warm')) {
    used = await stack(source)
    try {
      progress('bringing a home for this run up to date …')
      await used.setUp()
      // The floors boot the same guest image and template as the servers.
      floors.push(...(await measureFloors(used.home, neededFloors(), options.quick)))
      rows.push(...(await productRows(used, asked)))
    } finally {
      await used.end()
    }
  } else floors.push(...(await measureFloors(source, neededFloors(), options.quick)))
  if (fake.ids.some(wants)) rows.push(...(await fake.run({ quick: options.quick, source, progress })))
  rows.push(...agentRow(floors))
  const floorResults = results(floors, [])
  const rowResults = results(rows, floors).filter(({ id }) => wants(id))
  if (options.json)
    console.log(JSON.stringify({ environment, floors: floorResults, rows: rowResults }, null, 2))
  else
    for (const table of [floorResults, rowResults]) if (table.length > 0) console.log(`${textTable(table)}\n`)
  if (options.report) progress(`written: ${await writeReport(environment, floorResults, rowResults)}`)
}

async function productRows(servers: Stack, asked: readonly RowGroup[]): Promise<Samples[]> {
  progress('starting the servers …')
  const first = await servers.start({ first: true })
  const setUpMs = await first.firstOutputMs
  const rows: Samples[] = [
    { id: 'setup-warm', title: 'start to first output, set up', unit: 's', values: [setUpMs / 1000] },
  ]
  const context: Bench = {
    servers: first,
    quick: options.quick,
    progress,
    async restart(signal) {
      await context.servers.stop(signal)
      context.servers = await servers.start({ first: false })
      return context.servers
    },
  }
  for (const group of asked) rows.push(...(await group.run(context)))
  return rows
}

/** Ctrl-C leaves nothing behind either. */
async function interrupted(): Promise<void> {
  progress('interrupted, cleaning up …')
  await used?.end()
  process.exit(130)
}

/** What the agent keeps resident is measured by the floor, where the agent can be asked; it is a row all the same. */
function agentRow(floors: Samples[]): Samples[] {
  const at = floors.findIndex(({ id }) => id === 'agent-resident')
  return at < 0 ? [] : floors.splice(at, 1)
}

function neededFloors(): string[] | undefined {
  if (!wanted) return undefined
  const of = figures.flatMap(({ id, floor }) => (wants(id) && floor ? [floor.of] : []))
  return [...new Set([...wanted, ...of])]
}

function wants(id: string): boolean {
  return !wanted || wanted.includes(id)
}

function firstThere(...candidates: readonly string[]): string {
  return candidates.find((path) => existsSync(path)) ?? '/var/lib/space'
}

function progress(line: string): void {
  process.stderr.write(`bench: ${line}\n`)
}
