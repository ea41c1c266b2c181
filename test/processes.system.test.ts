import { afterAll, beforeAll, expect, test } from 'vitest'
import { collect } from './client.ts'
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

test('a kill takes the whole process tree', async () => {
  const script = '(sleep 999 & sleep 999) & echo started; wait'
  const { process, session } = await server.client.command(sandbox, ['sh', '-c', script])
  const events = server.client.events(session)
  for await (const event of events) {
    if (event.name === 'stdout')
      await server.client.call('POST', `/v1/sandboxes/${sandbox}/processes/${process.id}/kill`)
    if (event.name === 'process_exited')
      expect(event.data).toMatchObject({ exit_code: null, signal: 9, reason: 'signalled' })
  }
  expect(await server.client.sh(sandbox, 'pgrep -c sleep || true')).toBe('0\n')
})

test('many commands side by side leave no zombie', async () => {
  const total = tier(100, 1000)
  let begun = 0
  const worker = async () => {
    while (begun < total) {
      begun += 1
      const { exit } = await server.client.run(sandbox, ['true'])
      expect(exit['exit_code']).toBe(0)
    }
  }
  await Promise.all(Array.from({ length: 16 }, worker))
  expect(await server.client.sh(sandbox, "ps -eo stat= | grep -c '^Z' || true")).toBe('0\n')
})

test('orphans are reaped', async () => {
  await server.client.sh(sandbox, '(sh -c "sleep 0.1; exit 3" &) ; exit 0')
  await server.client.sh(sandbox, 'sleep 0.5')
  expect(await server.client.sh(sandbox, "ps -eo stat= | grep -c '^Z' || true")).toBe('0\n')
})

test('stdin is /dev/null unless it is asked for', async () => {
  expect(await server.client.sh(sandbox, 'readlink /proc/self/fd/0; cat; echo done')).toBe(
    '/dev/null\ndone\n',
  )
})

test('stdin as a pipe carries bytes and its end', async () => {
  const { session } = await server.client.command(sandbox, ['sha256sum'], { stdin: 'pipe' })
  const result = collect(server.client.events(session))
  const base = session.events_url.replace(/\/events$/, '')
  const authorization = `Bearer ${session.token}`
  const sent = await fetch(`${base}/stdin`, {
    method: 'POST',
    headers: { authorization, 'stdin-offset': '0', 'content-type': 'application/octet-stream' },
    body: Buffer.from('hello'),
  })
  expect(await sent.json()).toEqual({ next_offset: 5 })
  const closed = await fetch(`${base}/stdin/close`, { method: 'POST', headers: { authorization } })
  expect(closed.status).toBe(204)
  expect((await result).stdout.toString()).toBe(
    '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824  -\n',
  )
})

test('a signal by name reaches the process group', async () => {
  const { process, session } = await server.client.command(sandbox, [
    'sh',
    '-c',
    'trap "echo caught; exit 9" USR1; echo ready; while :; do sleep 0.1; done',
  ])
  let printed = ''
  for await (const event of server.client.events(session)) {
    if (event.name === 'stdout') printed += Buffer.from(String(event.data['data']), 'base64').toString()
    if (printed === 'ready\n')
      await server.client.call('POST', `/v1/sandboxes/${sandbox}/processes/${process.id}/signal`, {
        signal: 'SIGUSR1',
      })
    if (event.name === 'process_exited') expect(event.data['exit_code']).toBe(9)
  }
  expect(printed).toBe('ready\ncaught\n')
})

test('the workload cannot see or kill the agent', async () => {
  expect(await server.client.sh(sandbox, 'ps -e | grep -c agent || true')).toBe('0\n')
  await server.client.run(sandbox, ['kill', '-9', '-1'], { user: 'root' })
  expect(await server.client.sh(sandbox, 'echo alive')).toBe('alive\n')
})

test('exec runs a command to its end in one call', async () => {
  const { urls } = await server.client.call('GET', `/v1/sandboxes/${sandbox}`)
  const answer = await server.client.call('POST', `${urls.data_plane}/v1/sandboxes/${sandbox}/exec`, {
    argv: ['sh', '-c', 'cat; echo err >&2; exit 4'],
    input: 'given',
  })
  expect(answer).toMatchObject({
    exit_code: 4,
    signal: null,
    stdout: 'given',
    stderr: 'err\n',
    stdout_truncated: false,
  })
})

test('no packet leaves: a connection fails at once instead of hanging', async () => {
  const started = Date.now()
  const { exit } = await server.client.run(sandbox, ['curl', '-sS', '--max-time', '20', 'http://192.0.2.1/'])
  expect(exit['exit_code']).not.toBe(0)
  expect(Date.now() - started).toBeLessThan(30_000)
})
