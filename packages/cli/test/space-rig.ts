/**
 * SPACE made small for the command line's tests: control and node as `space up` puts them together, on the fake
 * machine, with true sockets and databases; and the command line as its own process.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Template } from '@space/node'
import { SpaceClient } from '@space/sdk'
import { FakeHost, fakeDriver } from '@space/testkit'
import { pino } from 'pino'
import { type Composition, compose } from '../src/server/composition.ts'
import { writeConfig } from '../src/settings/config-file.ts'
import { readSettings, type Settings } from '../src/settings/settings.ts'

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: Buffer
  readonly stderr: string
}

export interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  /** Resolves once stdout and stderr together hold this text. */
  saw(text: string): Promise<void>
}

export interface SpaceRig extends AsyncDisposable {
  readonly settings: Settings
  readonly client: SpaceClient
  readonly fakeHost: FakeHost
  /** Starts `space` with these arguments. */
  start(argv: readonly string[], options?: { stdin?: string | Buffer; env?: Record<string, string> }): Running
  /** The same, to its end. */
  space(
    argv: readonly string[],
    options?: { stdin?: string | Buffer; env?: Record<string, string> },
  ): Promise<Ended>
  /** Ends the servers and starts them again, as after an update; machines go on. */
  restart(): Promise<void>
}

const main = join(import.meta.dirname, '../src/main.ts')

export async function spaceRig(): Promise<SpaceRig> {
  const folder = await mkdtemp(join(tmpdir(), 'space-cli-'))
  const configPath = join(folder, 'config.json')
  const [apiPort, dataPlanePort] = await freePorts()
  const settings = readSettings({
    SPACE_HOME: join(folder, 'home'),
    SPACE_CONFIG: configPath,
    SPACE_API_URL: `http://127.0.0.1:${apiPort}`,
    SPACE_DATA_PLANE_URL: `http://127.0.0.1:${dataPlanePort}`,
    SPACE_READY_MACHINES: '0',
  })
  const fakeHost = new FakeHost()
  const template = await fakeTemplate(settings.home)
  const begin = () => {
    const templates = {
      list: async () => [template],
      resolve: async (name: string) =>
        [...template.tags, 'base', template.digest].includes(name) ? template : undefined,
      remove: async () => undefined,
    }
    const guestImage = {
      vmlinux: '',
      initramfs: '',
      modulesDrive: '',
      kernelRelease: '6.1.0-fake',
      digest: 'fake',
    }
    return compose(
      settings,
      { driver: fakeDriver(fakeHost), guestImage, templates },
      pino({ level: 'silent' }),
    )
  }
  let composition: Composition = await begin()
  const { token } = await composition.bootstrap()
  const { apiUrl, dataPlaneUrl } = composition
  await writeConfig(configPath, { apiUrl, dataPlaneUrl, token })
  const start: SpaceRig['start'] = (argv, options = {}) =>
    follow(
      spawn(process.execPath, [main, ...argv], {
        stdio: ['pipe', 'pipe', 'pipe'],
        env: { PATH: process.env['PATH'], HOME: folder, SPACE_CONFIG: configPath, ...options.env },
      }),
      options.stdin,
    )
  return {
    settings,
    client: new SpaceClient({ apiUrl, token }),
    fakeHost,
    start,
    space: (argv, options) => start(argv, options).ended,
    async restart() {
      await composition.release()
      composition = await begin()
    },
    async [Symbol.asyncDispose]() {
      await composition.shutdown()
      await fakeHost.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function follow(child: ChildProcess, stdin: string | Buffer | undefined): Running {
  const stdout: Buffer[] = []
  const stderr: Buffer[] = []
  child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk))
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(stdin)
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) =>
      resolve({ code, signal, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString() }),
    )
  })
  return {
    child,
    ended,
    async saw(text) {
      const deadlineMs = performance.now() + 20_000
      while (!Buffer.concat([...stdout, ...stderr]).includes(text)) {
        if (performance.now() > deadlineMs)
          throw new Error(`never saw ${text}, but:\n${Buffer.concat([...stdout, ...stderr])}`)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    },
  }
}

async function fakeTemplate(home: string): Promise<Template> {
  const hex = 'f'.repeat(64)
  const folder = join(home, 'node', 'templates', hex)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'root.ext4'), '')
  return {
    name: 'base',
    digest: `sha256:${hex}`,
    tags: ['base:latest', 'seed:latest'],
    folder,
    rootImage: join(folder, 'root.ext4'),
    recipeHash: 'fake',
    sizeBytes: 0,
    diskMib: 8192,
    defaultShape: { vcpus: 1, memoryMib: 1024 },
    defaults: { user: 'user', cwd: '/home/user', env: {} },
    createdAtMs: 0,
  }
}

async function freePorts(): Promise<[number, number]> {
  const servers = [createServer(), createServer()]
  const ports: number[] = []
  for (const server of servers) {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    ports.push(typeof address === 'object' && address !== null ? address.port : 0)
  }
  for (const server of servers) await new Promise((resolve) => server.close(resolve))
  return [ports[0] ?? 0, ports[1] ?? 0]
}
