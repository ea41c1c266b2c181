/**
 * The real servers, started as a user starts them: `space up --yes` in a process of its own, on free ports, with a
 * home and a client configuration of the bench. Sandboxes outlive a stop; `end` removes everything.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Api } from './api.ts'
import { BenchError } from './errors.ts'
import { linkedHome } from './home.ts'
import { endMachines } from './processes.ts'

const upTimeoutMs = 600_000
const stopTimeoutMs = 30_000
/** The line `space up --json` prints when it serves and the first sandbox has shown itself. */
const servesLine = /^\{.*"api_url"/m
const main = join(import.meta.dirname, '..', 'packages', 'cli', 'src', 'main.ts')

export interface Servers {
  readonly home: string
  readonly pid: number
  readonly api: Api
  /** When the process was started, on the clock of `performance.now()`. */
  readonly startedAt: number
  /** Milliseconds from starting the process to the first time `/readyz` answered 200. */
  readonly servingMs: number
  /** Milliseconds until the first sandbox of `space up` had printed and gone again; rejects when it never does. */
  readonly firstOutputMs: Promise<number>
  /** Ends the servers by `signal`; the sandboxes go on. */
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

export interface Stack {
  readonly home: string
  /** Brings the home up to date with this clone; quick where there is nothing to do. */
  setUp(): Promise<void>
  /** Starts the servers; `first` has them show a first sandbox, as by default. */
  start(options: { readonly first: boolean }): Promise<Servers>
  /** Ends servers and sandboxes and removes the home. */
  end(): Promise<void>
}

/** A stack whose images and templates are those of `source`. */
export async function stack(source: string): Promise<Stack> {
  const home = await linkedHome(source)
  const [apiPort, dataPlanePort] = await freePorts()
  const config = join(home, 'client.json')
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    SPACE_HOME: home,
    SPACE_CONFIG: config,
    SPACE_API_URL: `http://127.0.0.1:${apiPort}`,
    SPACE_DATA_PLANE_URL: `http://127.0.0.1:${dataPlanePort}`,
    SPACE_LOG_LEVEL: 'warn',
  }
  let running: Servers | undefined
  const end = async () => {
    await running?.stop('SIGTERM')
    await space(env, ['down']).catch((error: unknown) => process.stderr.write(`bench: ${String(error)}\n`))
    await endMachines(home)
    await rm(home, { recursive: true, force: true })
  }
  let ending: Promise<void> | undefined
  return {
    home,
    setUp: () => space(env, ['up', '--yes', '--setup-only']),
    async start({ first }) {
      running = await up(home, config, env, first ? [] : ['--no-first'])
      return running
    },
    end() {
      ending ??= end()
      return ending
    },
  }
}

async function up(home: string, config: string, env: NodeJS.ProcessEnv, more: string[]): Promise<Servers> {
  const startedAt = performance.now()
  const child = spawn(process.execPath, [main, 'up', '--yes', '--json', ...more], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const orphaned = () => child.kill('SIGTERM')
  process.once('exit', orphaned)
  child.once('exit', () => process.off('exit', orphaned))
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      printed = (printed + chunk.toString()).slice(-65_536)
    })
  const url = env['SPACE_API_URL'] ?? ''
  const until = async (condition: () => Promise<boolean> | boolean): Promise<number> => {
    while (!(await condition())) {
      if (child.exitCode !== null) throw new BenchError(`\`space up\` ended: ${printed.slice(-2000)}`)
      if (performance.now() - startedAt > upTimeoutMs)
        throw new BenchError(`\`space up\` did not get ready: ${printed.slice(-2000)}`)
      await delay(10)
    }
    return performance.now() - startedAt
  }
  try {
    const servingMs = await until(async () => await answers(`${url}/readyz`))
    await until(() => existsSync(config))
    const { token } = JSON.parse(await readFile(config, 'utf8')) as { token: string }
    const firstOutputMs = until(() => servesLine.test(printed))
    firstOutputMs.catch(() => undefined)
    const api = new Api(url, env['SPACE_DATA_PLANE_URL'] ?? '', token)
    const stop = async (signal: 'SIGTERM' | 'SIGKILL') => {
      api.close()
      await ended(child, signal)
    }
    return { home, pid: child.pid ?? 0, api, startedAt, servingMs, firstOutputMs, stop }
  } catch (error) {
    await ended(child, 'SIGTERM')
    throw error
  }
}

async function space(env: NodeJS.ProcessEnv, args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [main, ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let printed = ''
  child.stderr.on('data', (chunk: Buffer) => {
    printed = (printed + chunk.toString()).slice(-4096)
  })
  await once(child, 'close')
  if (child.exitCode !== 0)
    throw new BenchError(`\`space ${args.join(' ')}\` ended with ${child.exitCode}: ${printed.trim()}`)
}

async function ended(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill(signal)
  const killer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs)
  await gone
  clearTimeout(killer)
}

async function answers(url: string): Promise<boolean> {
  const answer = await fetch(url).catch(() => undefined)
  await answer?.arrayBuffer()
  return answer?.status === 200
}

async function freePorts(): Promise<[number, number]> {
  const listeners = [createServer(), createServer()]
  const ports: number[] = []
  for (const listener of listeners) {
    listener.listen(0, '127.0.0.1')
    await once(listener, 'listening')
    const address = listener.address()
    if (address !== null && typeof address === 'object') ports.push(address.port)
  }
  for (const listener of listeners) listener.close()
  return [ports[0] ?? 0, ports[1] ?? 0]
}
