import { patternBytes } from '@space/testkit'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type SpaceRig, spaceRig } from './space-rig.ts'

// Each command is a process of its own: on a busy machine a dozen of them take their time.
vi.setConfig({ testTimeout: 120_000 })

let rig: SpaceRig
beforeAll(async () => {
  rig = await spaceRig()
})
afterAll(() => rig[Symbol.asyncDispose]())

async function liveSandboxes(): Promise<string[]> {
  const { items } = await rig.client.sandboxes.list()
  return items.filter(({ state }) => state !== 'deleted' && state !== 'deleting').map(({ id }) => id)
}

test('run streams every byte to the right stream, exits with the code and deletes the sandbox', async () => {
  const { code, stdout, stderr } = await rig.space([
    'run',
    '--',
    'sh',
    '-c',
    "printf 'a\\n\\0\\xff'; stderr oops; exit 7",
  ])
  expect(stdout).toEqual(Buffer.from('a\n\0\xff', 'latin1'))
  expect(stderr).toBe('oops\n')
  expect(code).toBe(7)
  expect(await liveSandboxes()).toEqual([])
})

test('run passes megabytes through unchanged', async () => {
  const bytes = 3_000_000
  const { code, stdout } = await rig.space(['run', 'print', String(bytes)])
  expect(code).toBe(0)
  expect(stdout.equals(patternBytes(0, bytes))).toBe(true)
})

test('run -i passes stdin on, byte for byte', async () => {
  const input = patternBytes(0, 700_000)
  const { code, stdout } = await rig.space(['run', '-i', 'cat'], { stdin: input })
  expect(code).toBe(0)
  expect(stdout.equals(input)).toBe(true)
})

test('run without -i gives the command an empty stdin', async () => {
  const { code, stdout } = await rig.space(['run', 'cat'], { stdin: 'not passed on' })
  expect({ code, length: stdout.length }).toEqual({ code: 0, length: 0 })
})

test('environment, working directory and user arrive', async () => {
  const options = ['-e', 'A=1', '-e', 'FROM_HERE', '-w', '/tmp', '-u', 'root']
  const { stdout } = await rig.space(['run', ...options, 'sh', '-c', 'env; pwd; whoami'], {
    env: { FROM_HERE: 'yes' },
  })
  const lines = stdout.toString().split('\n')
  expect(lines).toEqual(expect.arrayContaining(['A=1', 'FROM_HERE=yes', '/tmp', 'root']))
})

test('a program that is not there is 127 with a sentence, a template that is not there is 125 with a remedy', async () => {
  const missing = await rig.space(['run', 'no-such-program'])
  expect(missing.code).toBe(127)
  expect(missing.stderr).toMatch(/no-such-program could not be started.*ENOENT/)
  const template = await rig.space(['run', '-t', 'nope', 'true'])
  expect(template.code).toBe(125)
  expect(template.stderr).toMatch(/^space: .*nope/)
})

test('a time limit ends the command with 124, and says so', async () => {
  const { code, stderr } = await rig.space(['run', '--timeout', '0.3', 'sleep', '60'])
  expect(code).toBe(124)
  expect(stderr).toContain('time limit')
})

test.for(['SIGINT', 'SIGTERM'] as const)(
  '%s during a run deletes the sandbox and exits as a shell expects',
  async (signal) => {
    const run = rig.start(['run', 'sh', '-c', 'echo begun; sleep 60'])
    await run.saw('begun')
    run.child.kill(signal)
    expect((await run.ended).code).toBe(signal === 'SIGINT' ? 130 : 143)
    await expect.poll(liveSandboxes, { timeout: 20_000 }).toEqual([])
  },
)

test('a reader that leaves, as head does, ends the run quietly and deletes the sandbox', async () => {
  const run = rig.start(['run', 'yes'])
  await run.saw('y\n')
  run.child.stdout?.destroy()
  const { code, stderr } = await run.ended
  expect({ code, stderr }).toEqual({ code: 141, stderr: '' })
  await expect.poll(liveSandboxes, { timeout: 20_000 }).toEqual([])
})

test('a run goes on at the exact byte while the servers are restarted', async () => {
  const run = rig.start(['run', 'sh', '-c', 'echo begun; seq 1 50000; sleep 2; seq 50001 100000'])
  await run.saw('begun')
  await rig.restart()
  const { code, stdout } = await run.ended
  const expected = `begun\n${Array.from({ length: 100_000 }, (_, index) => `${index + 1}\n`).join('')}`
  expect(stdout.toString() === expected).toBe(true)
  expect(code).toBe(0)
})

test('create, ps, exec, logs, inspect and rm work on one sandbox', async () => {
  const created = await rig.space(['create', '-m', 'task=cli', '-e', 'A=sandbox'])
  const id = created.stdout.toString().trim()
  expect(id).toMatch(/^sbx/)
  const listed = await rig.space(['ps', '-m', 'task=cli'])
  expect(listed.stdout.toString()).toMatch(new RegExp(`${id} +running +base`))
  expect((await rig.space(['ps', '-q', '-m', 'task=cli'])).stdout.toString()).toBe(`${id}\n`)

  const executed = await rig.space(['exec', id, '--', 'sh', '-c', 'echo out; stderr err; exit 3'])
  expect(executed).toMatchObject({ code: 3, stdout: Buffer.from('out\n'), stderr: 'err\n' })
  const [process] = (await rig.client.processes.list(id)).items
  if (process === undefined) throw new Error('the process is not listed')
  const logs = await rig.space(['logs', process.id])
  expect(logs).toMatchObject({ code: 0, stdout: Buffer.from('out\n'), stderr: 'err\n' })
  const all = await rig.space(['logs', id])
  expect(all.stdout.toString()).toBe('out\n')
  expect(all.stderr).toContain(process.id)

  const shown = await rig.space(['inspect', id])
  expect(shown.stdout.toString()).toMatch(/state: running/)
  expect(shown.stdout.toString()).toContain(process.id)
  const json = JSON.parse((await rig.space(['inspect', '--json', process.id])).stdout.toString())
  expect(json).toMatchObject({ id: process.id, exit_code: 3 })

  expect((await rig.space(['rm', id])).stdout.toString()).toBe(`${id}\n`)
  expect((await rig.client.sandboxes.get(id)).state).toBe('deleted')
})

test('logs -f follows a process that runs to its end', async () => {
  const { sandbox } = await rig.client.sandboxes.create({ template: 'base' })
  const running = await rig.client.commands.run(sandbox.id, {
    argv: ['sh', '-c', 'echo one; sleep 1; echo two'],
  })
  const reading = running[Symbol.asyncIterator]()
  await reading.next()
  const followed = await rig.space(['logs', '-f', running.process.id])
  expect(followed.stdout.toString()).toBe('one\ntwo\n')
  await rig.client.sandboxes.delete(sandbox.id)
})

test('Ctrl-C in exec reaches the command and leaves the sandbox; the second one kills', async () => {
  const { sandbox } = await rig.client.sandboxes.create({ template: 'base' }, { waitSeconds: 30 })
  const gentle = rig.start(['exec', sandbox.id, 'sh', '-c', 'echo begun; sleep 60'])
  await gentle.saw('begun')
  gentle.child.kill('SIGINT')
  expect((await gentle.ended).code).toBe(130)
  const stubborn = rig.start(['exec', sandbox.id, 'stubborn', '60'])
  let early: string | undefined
  void stubborn.ended.then(({ code, stderr }) => {
    early = `ended with ${code}: ${stderr}`
  })
  const newest = async () => early ?? (await rig.client.processes.list(sandbox.id)).items[0]?.state
  await expect.poll(newest, { timeout: 25_000 }).toBe('running')
  stubborn.child.kill('SIGINT')
  await new Promise((resolve) => setTimeout(resolve, 300))
  stubborn.child.kill('SIGINT')
  expect((await stubborn.ended).code).toBe(137)
  expect((await rig.client.sandboxes.get(sandbox.id)).state).toBe('running')
  await rig.client.sandboxes.delete(sandbox.id)
})

test('unknown objects, a refused token and a silent address have their own exit codes and remedies', async () => {
  const unknown = await rig.space(['inspect', `sbx${'0'.repeat(25)}`])
  expect(unknown.code).toBe(3)
  expect(unknown.stderr).toContain('→')
  const refused = await rig.space(['ps', '--json'], { env: { SPACE_API_TOKEN: 'spt_wrong' } })
  expect(refused.code).toBe(1)
  expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: 'unauthorized' } })
  const silent = await rig.space(['ps'], { env: { SPACE_API_URL: 'http://127.0.0.1:9' } })
  expect(silent.code).toBe(4)
  expect(silent.stderr).toContain('http://127.0.0.1:9')
})

test('a token can be made, used by login, listed and revoked', async () => {
  const made = JSON.parse(
    (await rig.space(['token', 'create', 'laptop', '--expires', '1h', '--json'])).stdout.toString(),
  )
  const elsewhere = { SPACE_CONFIG: `${rig.settings.home}/elsewhere/config.json` }
  const login = await rig.space(['login', rig.settings.apiUrl.href], {
    stdin: `${made.value}\n`,
    env: elsewhere,
  })
  expect(login).toMatchObject({ code: 0 })
  expect((await rig.space(['ps', '--json'], { env: elsewhere })).stdout.toString()).toMatch(/^\[/)
  expect((await rig.space(['token', 'ls'])).stdout.toString()).toMatch(new RegExp(`${made.id} +laptop`))
  expect((await rig.space(['token', 'revoke', made.id])).code).toBe(0)
  expect((await rig.space(['ps'], { env: elsewhere })).code).toBe(1)
})

test('templates and accounts are listed, as text and as JSON', async () => {
  expect((await rig.space(['template', 'ls'])).stdout.toString()).toMatch(/base +base:latest/)
  const accounts = JSON.parse((await rig.space(['account', 'ls', '--json'])).stdout.toString())
  expect(accounts).toHaveLength(1)
})

test('run --json tells each event as a line, with the bytes in base64', async () => {
  const { code, stdout } = await rig.space(['run', '--json', 'echo', 'hi'])
  const events = stdout
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(events.map((event) => event.type)).toEqual(['process_started', 'stdout', 'process_exited'])
  expect(Buffer.from(events[1].data, 'base64').toString()).toBe('hi\n')
  expect(code).toBe(0)
})

test('every command has help with an example', async () => {
  const { buildProgram } = await import('../src/program.ts')
  const terminal = { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr }
  const program = buildProgram({ terminal, env: {}, settings: () => rig.settings, exitCode: 0 })
  const leaves = program.commands.flatMap((command) =>
    command.commands.length > 0 ? command.commands : [command],
  )
  expect(leaves.length).toBeGreaterThan(15)
  for (const command of leaves) {
    let help = ''
    command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp()
    expect(help, command.name()).toMatch(/Examples:\n {2}\$ /)
    expect(help, command.name()).toContain('--json')
  }
})
