/** Commands in a sandbox that runs: the round trip of `exec`, the first byte after attaching, and a long stdout. */
import { type Api, text } from '../api.ts'
import { BenchError } from '../errors.ts'
import type { Samples } from '../samples.ts'
import type { Bench } from './row.ts'

const mebibyte = 1_048_576
const megabyte = 1_000_000

export const ids = ['exec-api', 'attach', 'stdout', 'get'] as const

/** All on one sandbox, one after the other. */
export async function run({ servers: { api }, quick, progress }: Bench): Promise<Samples[]> {
  const id = await api.createRunning()
  try {
    progress('exec, attach, get, stdout in one sandbox …')
    return [
      {
        id: 'exec-api',
        title: 'exec round trip through the API',
        unit: 'ms',
        values: await execTimes(api, id, quick ? 20 : 200),
      },
      {
        id: 'attach',
        title: 'first byte after attaching',
        unit: 'ms',
        values: await attachTimes(api, id, quick ? 20 : 100),
      },
      { id: 'get', title: 'GET sandbox', unit: 'ms', values: await getTimes(api, id, quick ? 50 : 500) },
      {
        id: 'stdout',
        title: 'stdout through journal and SSE',
        unit: 'MB/s',
        values: await stdoutSpeeds(api, id, quick ? 2 : 5, (quick ? 32 : 128) * mebibyte),
      },
    ]
  } finally {
    await api.delete(id)
  }
}

async function execTimes(api: Api, id: string, n: number): Promise<number[]> {
  for (let count = 0; count < 5; count++) await api.exec(id, ['/bin/true'])
  return await timed(n, async () => await api.exec(id, ['/bin/true']))
}

async function getTimes(api: Api, id: string, n: number): Promise<number[]> {
  return await timed(n, async () => {
    await api.state(id)
  })
}

async function attachTimes(api: Api, id: string, n: number): Promise<number[]> {
  const values: number[] = []
  for (let count = 0; count < n; count++) {
    const session = await api.command(id, ['/bin/echo', 'here'])
    const startedAt = performance.now()
    let firstAt: number | undefined
    await api.events(session, (event) => {
      if (event.name === 'stdout') firstAt ??= event.atMs
    })
    if (firstAt === undefined) throw new BenchError('echo printed nothing.')
    values.push(firstAt - startedAt)
  }
  return values
}

async function stdoutSpeeds(api: Api, id: string, n: number, totalBytes: number): Promise<number[]> {
  const values: number[] = []
  for (let count = 0; count < n; count++) {
    const session = await api.command(id, ['/usr/bin/head', '-c', String(totalBytes), '/dev/zero'])
    let bytes = 0
    let firstAt = 0
    let lastAt = 0
    await api.events(session, (event) => {
      if (event.name !== 'stdout') return
      if (firstAt === 0) firstAt = event.atMs
      bytes += Buffer.from(text(event.data, 'data'), 'base64').length
      lastAt = event.atMs
    })
    if (bytes !== totalBytes) throw new BenchError(`${bytes} bytes of ${totalBytes} came through the stream.`)
    values.push(bytes / megabyte / ((lastAt - firstAt) / 1000))
  }
  return values
}

async function timed(n: number, once: () => Promise<void>): Promise<number[]> {
  const values: number[] = []
  for (let count = 0; count < n; count++) {
    const startedAt = performance.now()
    await once()
    values.push(performance.now() - startedAt)
  }
  return values
}
