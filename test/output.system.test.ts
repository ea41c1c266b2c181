import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Server, tier } from './server.ts'

let server: Server
let sandbox: string

beforeAll(async () => {
  server = await Server.start()
  sandbox = await server.client.create()
})
afterAll(async () => {
  await server?.close()
})

test('every byte value arrives as it was printed, NUL, CR and invalid UTF-8 included', async () => {
  const { stdout, stderr, exit } = await server.client.run(sandbox, ['printf', 'a\\n\\nb\\r\\n\\0\\xff'])
  expect([...stdout]).toEqual([0x61, 0x0a, 0x0a, 0x62, 0x0d, 0x0a, 0x00, 0xff])
  expect(stderr.length).toBe(0)
  expect(exit).toMatchObject({ exit_code: 0, signal: null, timed_out: false, reason: 'exited' })
})

test('a line of 10 MiB without a newline arrives whole', async () => {
  const script = 'head -c 10485760 /dev/zero | tr "\\0" x'
  const { stdout } = await server.client.run(sandbox, ['sh', '-c', script])
  expect(stdout.length).toBe(10_485_760)
  expect(createHash('sha256').update(stdout).digest('hex')).toBe(
    createHash('sha256').update('x'.repeat(10_485_760)).digest('hex'),
  )
})

test('many short lines arrive in order, with the exit code behind the last byte', async () => {
  const { stdout, exit } = await server.client.run(sandbox, ['sh', '-c', 'seq 1 200000; exit 7'])
  const expected = Array.from({ length: 200_000 }, (_, index) => `${index + 1}\n`).join('')
  expect(stdout.toString() === expected).toBe(true)
  expect(exit['exit_code']).toBe(7)
})

test('a command that prints and exits at once loses nothing, however often', async () => {
  for (let index = 0; index < tier(20, 500); index += 1) {
    const { stdout, exit } = await server.client.run(sandbox, [
      'sh',
      '-c',
      `printf 'end of ${index}'; exit 3`,
    ])
    expect(stdout.toString()).toBe(`end of ${index}`)
    expect(exit['exit_code']).toBe(3)
  }
})

test('stdout and stderr come apart', async () => {
  const { stdout, stderr } = await server.client.run(sandbox, [
    'sh',
    '-c',
    'echo out; echo err >&2; echo out2',
  ])
  expect(stdout.toString()).toBe('out\nout2\n')
  expect(stderr.toString()).toBe('err\n')
})

test('a signal is told apart from an exit code', async () => {
  const { exit } = await server.client.run(sandbox, ['sh', '-c', 'kill -TERM $$'])
  expect(exit).toMatchObject({ exit_code: null, signal: 15, reason: 'signalled' })
})

test('a timeout returns what was printed and says so', async () => {
  const { stdout, exit } = await server.client.run(sandbox, ['sh', '-c', 'echo before; sleep 600'], {
    timeout_seconds: 1,
  })
  expect(stdout.toString()).toBe('before\n')
  expect(exit).toMatchObject({ timed_out: true, reason: 'timeout' })
})

test('a process that takes more memory than there is ends as out_of_memory', async () => {
  const { exit } = await server.client.run(sandbox, [
    'python3',
    '-c',
    'x = bytearray(3 << 30)\nprint(len(x))',
  ])
  const allocationRefused = exit['reason'] === 'exited' && exit['exit_code'] === 1
  expect(allocationRefused || exit['reason'] === 'out_of_memory').toBe(true)
  const filled = await server.client.run(sandbox, [
    'python3',
    '-c',
    'import mmap\nb = []\nwhile True:\n  m = mmap.mmap(-1, 1 << 24)\n  for i in range(0, 1 << 24, 4096): m[i] = 1\n  b.append(m)',
  ])
  expect(filled.exit).toMatchObject({ reason: 'out_of_memory' })
  expect(await server.client.sh(sandbox, 'echo still here')).toBe('still here\n')
})

test.each([
  ['a missing program', { argv: ['no-such-program'] }, 'ENOENT'],
  ['a folder as program', { argv: ['/tmp'] }, 'EACCES'],
  ['a missing working folder', { argv: ['true'], cwd: '/no/such/folder' }, 'ENOENT'],
  ['an unknown user', { argv: ['true'], user: 'nobody-of-that-name' }, 'ENOENT'],
])('%s is a typed failure with the name of the errno', async (_, { argv, ...options }, errno) => {
  const { exit, stdout } = await server.client.run(sandbox, argv, options)
  expect(exit).toMatchObject({ exit_code: null, signal: null, reason: 'failed_to_start', errno })
  expect(stdout.length).toBe(0)
})

test('a script with a bad interpreter is a typed failure', async () => {
  await server.client.sh(sandbox, 'printf "#!/no/such/interpreter\\n" > /tmp/bad; chmod +x /tmp/bad')
  const { exit } = await server.client.run(sandbox, ['/tmp/bad'])
  expect(exit).toMatchObject({ reason: 'failed_to_start', errno: 'ENOENT' })
})
