import { patternBytes } from '@space/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newCommand, newSandbox, type TestNode, testNode } from './fixture/node.ts'
import { attach, attachRaw, collect } from './fixture/stream.ts'

let node: TestNode
let sandbox = ''
beforeAll(async () => {
  node = await testNode()
  sandbox = await newSandbox(node, { FROM_SANDBOX: 'yes' })
})
afterAll(async () => {
  await node.close()
})

describe('a stream', () => {
  test('begins with process_started, has every byte, and ends with process_exited', async () => {
    const command = await newCommand(node, sandbox, ['printf', 'a\\n\\nb\\r\\n\\0\\xff'])
    const read = await collect(attach(command.eventsUrl, command.token))
    expect(read.events[0]).toMatchObject({
      id: '1.0.1',
      event: 'process_started',
      data: { process_id: command.processId },
    })
    expect(read.stdout).toEqual(Buffer.from('a\n\nb\r\n\0\xff', 'latin1'))
    expect(read.events.at(-1)).toMatchObject({
      id: '1.8.1',
      event: 'process_exited',
      data: { exit_code: 0, signal: null, timed_out: false, reason: 'exited' },
    })
  })

  test('keeps stdout and stderr apart and tells the exit code', async () => {
    const command = await newCommand(node, sandbox, ['sh', '-c', 'echo out; echo err >&2; exit 7'])
    const read = await collect(attach(command.eventsUrl, command.token))
    expect([read.stdout.toString(), read.stderr.toString(), read.exit?.['exit_code']]).toEqual([
      'out\n',
      'err\n',
      7,
    ])
  })

  test('starts the process at the first attach and never again', async () => {
    const command = await newCommand(node, sandbox, ['echo', 'once'])
    expect(
      (await node.api.getProcess({ sandboxId: sandbox, processId: command.processId })).startedAtUnixMs,
    ).toBe(0n)
    const both = await Promise.all([
      collect(attach(command.eventsUrl, command.token)),
      collect(attach(command.eventsUrl, command.token)),
    ])
    const later = await collect(attach(command.eventsUrl, command.token))
    for (const read of [...both, later]) expect(read.stdout.toString()).toBe('once\n')
  })

  test('tells a program that is missing as failed_to_start with the errno', async () => {
    const command = await newCommand(node, sandbox, ['no-such-program'])
    const startedMs = performance.now()
    const read = await collect(attach(command.eventsUrl, command.token))
    expect(read.exit).toEqual({
      exit_code: null,
      signal: null,
      timed_out: false,
      reason: 'failed_to_start',
      errno: 'ENOENT',
    })
    expect(performance.now() - startedMs).toBeLessThan(500)
    const process = await node.api.getProcess({ sandboxId: sandbox, processId: command.processId })
    expect(process.errno).toBe('ENOENT')
  })

  test('gives a command the environment of template, sandbox and command, in that order', async () => {
    const command = await newCommand(node, sandbox, ['env'], { env: { FROM: 'command' } })
    const text = (await collect(attach(command.eventsUrl, command.token))).stdout.toString()
    expect(text).toContain('FROM_SANDBOX=yes\n')
    expect(text).toContain('FROM=command\n')
    const who = await newCommand(node, sandbox, ['sh', '-c', 'whoami; pwd; hostname'])
    const read = await collect(attach(who.eventsUrl, who.token))
    expect(read.stdout.toString()).toBe(`user\n/home/user\n${sandbox}\n`)
  })
})

describe('resuming', () => {
  test('cut anywhere and resumed by Last-Event-ID, the joined bytes equal an uncut run', async () => {
    const bytes = 3_000_000
    const command = await newCommand(node, sandbox, ['print', String(bytes), '10007'])
    const chunks: Buffer[] = []
    let lastEventId: string | undefined
    let exited = false
    for (let cuts = 0; !exited; cuts += 1) {
      expect(cuts).toBeLessThan(1000)
      const abort = new AbortController()
      try {
        let events = 0
        const options = { signal: abort.signal, ...(lastEventId === undefined ? {} : { lastEventId }) }
        for await (const event of attach(command.eventsUrl, command.token, options)) {
          lastEventId = event.id
          if (event.event === 'stdout') chunks.push(Buffer.from(String(event.data['data']), 'base64'))
          if (event.event === 'process_exited') exited = true
          events += 1
          if (events > cuts % 5) break
        }
      } finally {
        abort.abort()
      }
    }
    expect(Buffer.concat(chunks).equals(patternBytes(0, bytes))).toBe(true)
  })

  test('from_offset begins inside a record, and behind the exit there is nothing to come back for', async () => {
    const command = await newCommand(node, sandbox, ['echo', 'hello world'])
    const whole = await collect(attach(command.eventsUrl, command.token))
    const rest = await collect(attach(command.eventsUrl, command.token, { fromOffset: 6 }))
    expect(rest.stdout.toString()).toBe('world\n')
    expect(rest.events.map(({ event }) => event)).toEqual(['stdout', 'process_exited'])
    const lastEventId = whole.events.at(-1)?.id ?? ''
    expect((await attachRaw(command.eventsUrl, command.token, { lastEventId })).status).toBe(204)
    const before = whole.events.at(-2)?.id ?? ''
    const end = await collect(attach(command.eventsUrl, command.token, { lastEventId: before }))
    expect(end.events.map(({ event }) => event)).toEqual(['process_exited'])
  })

  test('an id of another epoch, or none at all, is answered by name', async () => {
    const command = await newCommand(node, sandbox, ['echo', 'x'])
    await collect(attach(command.eventsUrl, command.token))
    const read = await collect(attach(command.eventsUrl, command.token, { lastEventId: '9.1.0' }))
    expect(read.events[0]).toMatchObject({
      event: 'resync_required',
      data: { epoch: 1, first_offset: 0, lost_bytes: 0 },
    })
    const bad = await attachRaw(command.eventsUrl, command.token, { lastEventId: 'nonsense' })
    expect(bad.status).toBe(400)
    expect(await bad.json()).toMatchObject({ code: 'invalid_request', details: { field: 'Last-Event-ID' } })
  })
})

describe('many readers', () => {
  test('one that stops reading changes nothing for another', async () => {
    const bytes = 12_000_000
    const command = await newCommand(node, sandbox, ['print', String(bytes), '65536'])
    const stalled = await attachRaw(command.eventsUrl, command.token)
    const read = await collect(attach(command.eventsUrl, command.token))
    expect(read.stdout.length).toBe(bytes)
    expect(read.stdout.equals(patternBytes(0, bytes))).toBe(true)
    await stalled.body?.cancel()
  })
})

describe('access', () => {
  test('without a valid token there is no stream', async () => {
    const command = await newCommand(node, sandbox, ['echo', 'secret'])
    for (const token of ['wrong', '']) {
      const response = await attachRaw(command.eventsUrl, token)
      expect(response.status).toBe(401)
      expect(await response.json()).toMatchObject({ code: 'unauthorized', retryable: false })
    }
  })

  test('an open stream ends within a second or so of the revocation', async () => {
    const command = await newCommand(node, sandbox, ['sleep', '60'])
    const response = await attachRaw(command.eventsUrl, command.token)
    expect(response.status).toBe(200)
    node.control.sessions.delete(command.sessionId)
    const startedMs = performance.now()
    await expect(response.text()).rejects.toThrow()
    expect(performance.now() - startedMs).toBeLessThan(3000)
  })

  test('every answer has a request id, and what is not there an envelope', async () => {
    const response = await fetch(`${node.url}/v1/nowhere`, { headers: { 'x-request-id': 'mine-1' } })
    expect(response.status).toBe(404)
    expect(response.headers.get('x-request-id')).toBe('mine-1')
    expect(await response.json()).toMatchObject({ code: 'not_found', request_id: 'mine-1' })
    expect(await (await fetch(`${node.url}/healthz`)).json()).toEqual({ status: 'ok', reason: null })
  })
})
