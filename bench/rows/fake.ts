/**
 * What the control plane does without a machine in the way: the real servers over the fake machine, in a process of
 * their own. Creates accepted a second by 32 clients, `get` meanwhile, and a page of 100.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Api } from '../api.ts'
import { BenchError } from '../errors.ts'
import type { Samples } from '../samples.ts'

const clients = 32
const getEveryMs = 20

export const ids = ['creates', 'get-meanwhile', 'list'] as const

/** Starts the servers, measures, ends them. */
export async function run(options: {
  quick: boolean
  source: string
  progress(line: string): void
}): Promise<Samples[]> {
  options.progress('creates and lists on the fake machine …')
  const child = spawn(process.execPath, [join(import.meta.dirname, '..', 'fake-servers.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, SPACE_HOME: options.source },
  })
  const ended = once(child, 'close')
  try {
    const { value: line } = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next()
    if (line === undefined) throw new BenchError('The servers over the fake machine did not start.')
    const { url, token } = JSON.parse(line) as { url: string; token: string }
    const api = new Api(url, '', token)
    try {
      return await measure(api, options.quick)
    } finally {
      api.close()
    }
  } finally {
    // The servers end when their stdin does.
    child.stdin.end()
    await ended
  }
}

async function measure(api: Api, quick: boolean): Promise<Samples[]> {
  for (let count = 0; count < 100; count++) await api.create()
  const list: number[] = []
  for (let count = 0; count < (quick ? 20 : 200); count++) {
    const startedAt = performance.now()
    const { body } = await api.call('GET', `${api.url}/v1/sandboxes?limit=100`)
    list.push(performance.now() - startedAt)
    const { items } = body as { items: unknown[] }
    if (items.length !== 100) throw new BenchError(`The page has ${items.length} sandboxes instead of 100.`)
  }
  const speeds: number[] = []
  const gets: number[] = []
  for (let round = 0; round < (quick ? 2 : 5); round++) {
    const known = await api.create()
    const total = quick ? 100 : 500
    const stop = new AbortController()
    const reader = getUntil(api, known, gets, stop.signal)
    speeds.push(await createSpeed(api, total))
    stop.abort()
    await reader
  }
  return [
    {
      id: 'creates',
      title: `creates accepted, fake machine, ${clients} clients`,
      unit: '/s',
      values: speeds,
    },
    { id: 'get-meanwhile', title: 'GET sandbox meanwhile', unit: 'ms', values: gets },
    { id: 'list', title: 'list of 100', unit: 'ms', values: list },
  ]
}

async function createSpeed(api: Api, total: number): Promise<number> {
  let left = total
  const startedAt = performance.now()
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (left-- > 0) await api.create()
    }),
  )
  return total / ((performance.now() - startedAt) / 1000)
}

async function getUntil(api: Api, id: string, values: number[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const startedAt = performance.now()
    await api.state(id)
    const tookMs = performance.now() - startedAt
    values.push(tookMs)
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, getEveryMs - tookMs)))
  }
}
