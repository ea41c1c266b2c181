/**
 * `space up` and `space down` as a person uses them, on real machines: the life of a server and of what outlives it.
 * The images are those of the test run, linked into a SPACE_HOME of its own.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

const testHome = process.env['SPACE_TEST_HOME'] ?? '/var/lib/space-dev'
const main = join(import.meta.dirname, '../src/main.ts')

let folder = ''
let env: Record<string, string> = {}
const servers = new Set<ChildProcess>()

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'space-up-'))
  const home = join(folder, 'home')
  for (const part of ['images', 'templates', 'cache/agent', 'cache/kernel'])
    await linkTree(join(testHome, 'node', part), join(home, 'node', part))
  env = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    SPACE_HOME: home,
    SPACE_CONFIG: join(folder, 'config', 'config.json'),
    SPACE_API_URL: `http://127.0.0.1:${await freePort()}`,
    SPACE_DATA_PLANE_URL: `http://127.0.0.1:${await freePort()}`,
    SPACE_READY_MACHINES: '0',
  }
})

afterAll(async () => {
  await space(['down'])
  for (const server of servers) server.kill('SIGKILL')
  await rm(folder, { recursive: true, force: true })
})

test('up shows a first sandbox, a second start says who serves, and Ctrl-C leaves sandboxes to be found again', async () => {
  const server = await up([])
  const text = server.output()
  expect(text).toMatch(/kernel +Linux 6\.\d+/)
  expect(text).toMatch(/boot id +[0-9a-f]{8}-/)
  expect(text).toMatch(/python +Python 3/)
  expect(text).toMatch(/ran by qemu-(tcg|kvm)/)
  expect(
    text
      .trimEnd()
      .split('\n')
      .slice(-3)
      .every((line) => line.startsWith('  npx space ')),
  ).toBe(true)
  expect((await stat(env['SPACE_CONFIG'] ?? '')).mode & 0o777).toBe(0o600)

  const second = await space(['up', '--yes'])
  expect(second.code).toBe(1)
  expect(second.stderr).toContain(`pid ${server.child.pid}`)

  const id = (await space(['create'])).stdout.toString().trim()
  server.child.kill('SIGINT')
  expect(await server.exited).toBe(0)
  expect(server.output()).toContain('1 sandbox goes on')
  expect((await space(['ps'])).code).toBe(4)

  await up(['--no-first'])
  expect((await space(['exec', id, 'hostname'])).stdout.toString().trim()).toBe(id)
})

test('killed while a command prints and started again, the stream continues at the exact byte', async () => {
  const [id] = (await space(['ps', '-q'])).stdout.toString().split('\n')
  const script = 'i=0; while [ $i -lt 150 ]; do echo line $i; i=$((i+1)); sleep 0.1; done; exit 9'
  let begun: (() => void) | undefined
  const printing = new Promise<void>((resolve) => {
    begun = resolve
  })
  const run = space(['exec', id ?? '', '--', 'sh', '-c', script], (text) => {
    if (text.includes('line 20')) begun?.()
  })
  await Promise.race([printing, run])
  for (const server of servers) {
    const gone = once(server, 'exit')
    server.kill('SIGKILL')
    await gone
  }
  await up(['--no-first'])
  const { code, stdout } = await run
  expect(stdout.toString()).toBe(Array.from({ length: 150 }, (_, index) => `line ${index}\n`).join(''))
  expect(code).toBe(9)
})

test('down --purge ends server and sandboxes and leaves nothing, naming what stays', async () => {
  const { code, stderr } = await space(['down', '--purge'])
  expect(code).toBe(0)
  expect(stderr).toMatch(/1 sandbox ended/)
  expect(stderr).toMatch(/left +.*npm packages/)
  expect(await readdir(folder)).toEqual([])
  expect(await processesWith(env['SPACE_HOME'] ?? '')).toEqual([])
})

async function up(options: readonly string[]) {
  const child = spawn(process.execPath, [main, 'up', '--yes', ...options], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  servers.add(child)
  const output: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => output.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => output.push(chunk))
  const text = () => Buffer.concat(output).toString()
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)))
  void exited.then(() => servers.delete(child))
  while (!text().includes('npx space ps')) {
    if (child.exitCode !== null)
      throw new Error(`up ended with ${child.exitCode}:\n${text()}\n${await logTail()}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return { child, output: text, exited }
}

function space(
  argv: readonly string[],
  onOutput?: (text: string) => void,
): Promise<{ code: number | null; stdout: Buffer; stderr: string }> {
  const child = spawn(process.execPath, [main, ...argv], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const stdout: Buffer[] = []
  const stderr: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => {
    stdout.push(chunk)
    onOutput?.(Buffer.concat(stdout).toString())
  })
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) =>
      resolve({ code, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString() }),
    )
  })
}

async function logTail(): Promise<string> {
  const log = await readFile(join(env['SPACE_HOME'] ?? '', 'run', 'server.log'), 'utf8').catch(String)
  return log.slice(-4_000)
}

/** The command lines of processes that name this folder, our own test run aside. */
async function processesWith(path: string): Promise<string[]> {
  const lines = await Promise.all(
    (await readdir('/proc'))
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
  )
  return lines.filter((line) => line.includes(path))
}

async function linkTree(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 })
  const copied = spawn('cp', ['-al', `${from}/.`, to], { stdio: 'ignore' })
  const [code] = await once(copied, 'exit')
  if (code !== 0) await cp(from, to, { recursive: true })
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}
