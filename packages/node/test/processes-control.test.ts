import { ConnectError } from '@connectrpc/connect'
import { fromConnectError, Process_State, SignalProcessRequest_Scope } from '@space/contract/node-link'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from './fixture/eventually.ts'
import { type NewCommand, newCommand, newId, newSandbox, type TestNode, testNode } from './fixture/node.ts'
import { attach, collect } from './fixture/stream.ts'

let node: TestNode
let sandbox = ''
let nowMs = Date.now()
beforeAll(async () => {
  node = await testNode({ nowMs: () => nowMs })
  sandbox = await newSandbox(node)
})
afterAll(async () => {
  await node.close()
})

function writeStdin(
  command: NewCommand,
  body: string | Uint8Array<ArrayBuffer>,
  offset?: number,
): Promise<Response> {
  return fetch(command.eventsUrl.replace(/events$/, 'stdin'), {
    method: 'POST',
    headers: {
      authorization: `Bearer ${command.token}`,
      ...(offset === undefined ? {} : { 'stdin-offset': String(offset) }),
    },
    body,
  })
}

function closeStdin(command: NewCommand): Promise<Response> {
  const headers = { authorization: `Bearer ${command.token}` }
  return fetch(command.eventsUrl.replace(/events$/, 'stdin/close'), { method: 'POST', headers })
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'ok'
  } catch (error) {
    expect(error).toBeInstanceOf(ConnectError)
    const failure = fromConnectError(error)
    return `${failure.code} ${failure.details['reason'] ?? failure.details['field'] ?? ''}`.trim()
  }
}

describe('stdin', () => {
  test('gives the program each byte once, whatever is sent again', async () => {
    const command = await newCommand(node, sandbox, ['cat'], { stdinPipe: true })
    const reading = collect(attach(command.eventsUrl, command.token))
    expect(await (await writeStdin(command, 'hello ')).json()).toEqual({ next_offset: 6 })
    expect(await (await writeStdin(command, 'lo world', 3)).json()).toEqual({ next_offset: 11 })
    const gap = await writeStdin(command, 'x', 99)
    expect(gap.status).toBe(409)
    expect(await gap.json()).toMatchObject({ code: 'conflict', details: { expected: 11 } })
    expect((await closeStdin(command)).status).toBe(204)
    expect((await reading).stdout.toString()).toBe('hello world')
  })

  test('takes more than any buffer holds', async () => {
    const command = await newCommand(node, sandbox, ['cat'], { stdinPipe: true })
    const reading = collect(attach(command.eventsUrl, command.token))
    const bytes = new Uint8Array(3_000_000).map((_, index) => index % 251)
    expect(await (await writeStdin(command, bytes)).json()).toEqual({ next_offset: 3_000_000 })
    await closeStdin(command)
    expect((await reading).stdout.equals(Buffer.from(bytes))).toBe(true)
  })

  test('to a process without one, or that ended, is a named failure', async () => {
    const without = await newCommand(node, sandbox, ['cat'])
    expect(await (await writeStdin(without, 'x')).json()).toMatchObject({
      code: 'failed_precondition',
      details: { reason: 'stdin_not_piped' },
    })
    const short = await newCommand(node, sandbox, ['true'], { stdinPipe: true })
    await collect(attach(short.eventsUrl, short.token))
    expect(await (await writeStdin(short, 'x')).json()).toMatchObject({
      code: 'failed_precondition',
      details: { reason: 'process_ended' },
    })
  })

  test('a terminal is told its size', async () => {
    const command = await newCommand(node, sandbox, ['sh', '-c', 'head -c 1; stty'], {
      ptyCols: 80,
      ptyRows: 24,
    })
    const reading = collect(attach(command.eventsUrl, command.token))
    const resized = await fetch(command.eventsUrl.replace(/events$/, 'resize'), {
      method: 'POST',
      headers: { authorization: `Bearer ${command.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ cols: 132, rows: 50 }),
    })
    expect(resized.status).toBe(204)
    await writeStdin(command, '.')
    const output = (await reading).events.filter(({ event }) => event === 'pty')
    expect(output.map(({ data }) => Buffer.from(String(data['data']), 'base64').toString()).join('')).toBe(
      '.50 132\n',
    )
  })
})

describe('signals', () => {
  const scope = SignalProcessRequest_Scope.TREE

  test('a kill ends the process and its stream says how', async () => {
    const command = await newCommand(node, sandbox, ['stubborn', '60'])
    const reading = collect(attach(command.eventsUrl, command.token))
    const ids = { sandboxId: sandbox, processId: command.processId }
    await eventually(async () => (await node.api.getProcess(ids)).state).toBe(Process_State.RUNNING)
    const term = await node.api.signalProcess({ ...ids, signal: 15, scope })
    expect(term.state).toBe(Process_State.RUNNING)
    const killed = await node.api.signalProcess({ ...ids, signal: 9, scope })
    expect(killed).toMatchObject({ state: Process_State.EXITED, signal: 9, reason: 'signalled' })
    expect((await reading).exit).toMatchObject({ exit_code: null, signal: 9, reason: 'signalled' })
    expect((await node.api.signalProcess({ ...ids, signal: 9, scope })).state).toBe(Process_State.EXITED)
  })

  test('a process nobody started is cancelled by a kill and takes no other signal', async () => {
    const command = await newCommand(node, sandbox, ['true'])
    const ids = { sandboxId: sandbox, processId: command.processId }
    expect(await codeOf(node.api.signalProcess({ ...ids, signal: 15, scope }))).toBe(
      'failed_precondition process_not_started',
    )
    expect((await node.api.signalProcess({ ...ids, signal: 9, scope })).reason).toBe('cancelled')
    const read = await collect(attach(command.eventsUrl, command.token))
    expect(read.events.map(({ event, data }) => [event, data['reason']])).toEqual([
      ['process_exited', 'cancelled'],
    ])
  })
})

describe('records', () => {
  test('creating the same process again gives the record, another command with its id is refused', async () => {
    const ids = { sandboxId: sandbox, processId: newId('process'), sessionId: newId('session') }
    const first = await node.api.createProcess({ ...ids, command: { argv: ['true'] } })
    expect((await node.api.createProcess({ ...ids, command: { argv: ['true'] } })).createdAtUnixMs).toBe(
      first.createdAtUnixMs,
    )
    expect(await codeOf(node.api.createProcess({ ...ids, command: { argv: ['false'] } }))).toBe('conflict')
    expect(
      await codeOf(node.api.createProcess({ ...ids, processId: '../../etc', command: { argv: ['true'] } })),
    ).toBe('invalid_request process_id')
    expect(await codeOf(node.api.getProcess({ sandboxId: newId('sandbox'), processId: ids.processId }))).toBe(
      'not_found',
    )
  })

  test('pages are newest first, and the cursor survives what is added', async () => {
    const own = await newSandbox(node)
    const made: string[] = []
    for (let i = 0; i < 5; i += 1) made.unshift((await newCommand(node, own, ['true'])).processId)
    const first = await node.api.listProcesses({ sandboxId: own, limit: 2 })
    await newCommand(node, own, ['true'])
    const second = await node.api.listProcesses({ sandboxId: own, limit: 3, cursor: first.nextCursor })
    expect([...first.processes, ...second.processes].map(({ processId }) => processId)).toEqual(made)
  })

  test('control hears of each end', async () => {
    const command = await newCommand(node, sandbox, ['exit', '3'])
    await collect(attach(command.eventsUrl, command.token))
    await eventually(() => node.control.processes.get(command.processId)?.exitCode).toBe(3)
    expect(node.control.processes.get(command.processId)).toMatchObject({
      state: Process_State.EXITED,
      reason: 'exited',
    })
  })

  test('a session nobody attached to within ten minutes is withdrawn, output goes a day after the exit', async () => {
    const forgotten = await newCommand(node, sandbox, ['true'])
    const done = await newCommand(node, sandbox, ['echo', 'kept'])
    await collect(attach(done.eventsUrl, done.token))
    nowMs += 601_000
    const ids = { sandboxId: sandbox, processId: forgotten.processId }
    await eventually(async () => (await node.api.getProcess(ids)).reason).toBe('cancelled')
    expect((await collect(attach(done.eventsUrl, done.token))).stdout.toString()).toBe('kept\n')
    nowMs += 86_400_000
    await eventually(() =>
      codeOf(node.api.getProcess({ sandboxId: sandbox, processId: done.processId })),
    ).toBe('not_found')
  })
})
