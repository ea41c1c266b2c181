/**
 * The real server, started as a user starts it, on free ports with a SPACE_HOME of its own. Images and templates come
 * from the home that the test set-up filled (`SPACE_TEST_HOME`), so that a test pays for its sandboxes and nothing else.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from './client.ts'

const root = join(import.meta.dirname, '..')
export const cli = join(root, 'packages', 'cli', 'src', 'main.ts')
export const artifactHome = process.env['SPACE_TEST_HOME'] ?? '/var/lib/space'

/** True in `npm run test:full`, where repetitions and durations are those of the promises. */
export const fullTier = process.env['SPACE_TEST_TIER'] === 'full'

/** Repetitions, bytes or seconds of a test: the smallest that can fail, or the promised number in the full tier. */
export function tier(small: number, full: number): number {
  return fullTier ? full : small
}

export interface ServerOptions {
  readonly env?: Readonly<Record<string, string>>
}

export class Server {
  readonly home: string
  readonly env: Record<string, string>
  #child: ChildProcess | undefined
  #client: Client | undefined

  private constructor(home: string, env: Record<string, string>) {
    this.home = home
    this.env = env
  }

  static async start(options: ServerOptions = {}): Promise<Server> {
    const home = mkdtempSync('/var/tmp/space-test-')
    mkdirSync(join(home, 'node'), { mode: 0o700 })
    for (const name of ['images', 'templates', 'cache'])
      symlinkSync(join(artifactHome, 'node', name), join(home, 'node', name))
    const [api, dataPlane] = [await freePort(), await freePort()]
    const server = new Server(home, {
      SPACE_HOME: home,
      SPACE_CONFIG: join(home, 'config.json'),
      SPACE_API_URL: `http://127.0.0.1:${api}`,
      SPACE_DATA_PLANE_URL: `http://127.0.0.1:${dataPlane}`,
      ...options.env,
    })
    await server.boot()
    return server
  }

  /** Starts the process, on the home it had before if it was killed. */
  async boot(): Promise<void> {
    const log = createWriteStream(join(this.home, 'server.log'), { flags: 'a' })
    await once(log, 'open')
    const child = spawn(process.execPath, [cli, 'up', '--yes', '--no-first'], {
      cwd: root,
      env: { ...process.env, ...this.env },
      stdio: ['ignore', log, log],
      detached: true,
    })
    this.#child = child
    const gone = once(child, 'exit')
    const deadline = Date.now() + 240_000
    for (;;) {
      const ready = await Promise.race([
        fetch(`${this.env['SPACE_API_URL']}/readyz`).then(
          (answer) => answer.ok && existsSync(join(this.home, 'config.json')),
          () => false,
        ),
        gone.then(() => {
          throw new Error(`the server ended while it started:\n${this.log()}`)
        }),
      ])
      if (ready) break
      if (Date.now() > deadline) throw new Error(`the server is not ready after 240 s:\n${this.log()}`)
      await sleep(50)
    }
    const config = JSON.parse(readFileSync(join(this.home, 'config.json'), 'utf8')) as { token: string }
    this.#client = new Client(this.env['SPACE_API_URL'] ?? '', config.token)
  }

  get client(): Client {
    if (!this.#client) throw new Error('the server was not started')
    return this.#client
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  log(): string {
    return readFileSync(join(this.home, 'server.log'), 'utf8').slice(-4000)
  }

  /** Resident memory of the server process in MiB. */
  residentMib(): number {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8')
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024
  }

  async kill9(): Promise<void> {
    await this.#end('SIGKILL')
  }

  /** As Ctrl-C does: the servers end, sandboxes go on. */
  async interrupt(): Promise<void> {
    await this.#end('SIGINT')
  }

  /** Ends servers and sandboxes and removes the home. */
  async close(): Promise<void> {
    const down = await this.space(['down'])
    await this.#end('SIGKILL')
    if (down.code !== 0) throw new Error(`space down failed: ${down.stderr}\n${this.log()}`)
    rmSync(this.home, { recursive: true, force: true })
  }

  /** Runs the command line against this server. */
  async space(
    argv: readonly string[],
    input?: string,
  ): Promise<{ code: number | null; stdout: Buffer; stderr: string }> {
    const child = spawn(process.execPath, [cli, ...argv], {
      cwd: root,
      env: { ...process.env, ...this.env },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    child.stdin.end(input ?? '')
    const stdout: Buffer[] = []
    const stderr: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
    const [code] = (await once(child, 'close')) as [number | null]
    return { code, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString() }
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill(signal)
    await gone
  }
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}
