import type { CommandAnswer, Process, ProcessPage, SessionAnswer } from '@space/contract'
import { Process_State, SignalProcessRequest_Scope } from '@space/contract/node-link'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Rig, startRig } from './rig.ts'

let rig: Rig
let id: string
beforeAll(async () => {
  rig = await startRig()
  id = await rig.createRunning()
})
afterAll(() => rig.close())
afterEach(() => {
  rig.node.before = () => Promise.resolve()
})

async function command(body: Record<string, unknown>): Promise<CommandAnswer> {
  const made = await rig.call<CommandAnswer>('POST', `/v1/sandboxes/${id}/commands`, body)
  expect(made.status).toBe(201)
  return made.body
}

test('a command gets a process id and a session that leads to the data plane; nothing starts yet', async () => {
  const { process, session } = await command({ argv: ['echo', ''], metadata: { step: '1' } })
  expect(process).toMatchObject({
    sandbox_id: id,
    state: 'created',
    argv: ['echo', ''],
    metadata: { step: '1' },
    pid: null,
    exit_code: null,
    output: { bytes: 0, first_offset: 0, next_offset: 0 },
  })
  expect(session.events_url).toBe(`http://127.0.0.1:7071/v1/sessions/${session.id}/events`)
  expect(session.token).toMatch(/^spt_s/)
})

test('everything of a command reaches the node as it was given', async () => {
  const { process } = await command({
    argv: ['sh', '-c', 'echo "$A"'],
    env: { A: 'ü' },
    cwd: '/tmp',
    user: 'root',
    stdin: 'pipe',
    pty: { cols: 80, rows: 24 },
    timeout_seconds: 1.5,
    keep_awake: false,
  })
  expect(rig.node.processes.get(process.id)?.command).toMatchObject({
    argv: ['sh', '-c', 'echo "$A"'],
    env: { A: 'ü' },
    cwd: '/tmp',
    user: 'root',
    stdinPipe: true,
    ptyCols: 80,
    ptyRows: 24,
    timeoutMs: 1500n,
    keepAwake: false,
  })
})

test.each([
  ['no program', { argv: [] }, 'argv'],
  ['a NUL', { argv: ['a\0'] }, 'argv.0'],
  ['an unknown field', { argv: ['a'], shell: true }, 'shell'],
  ['a terminal of no width', { argv: ['a'], pty: { cols: 0, rows: 1 } }, 'pty.cols'],
  ['no time at all', { argv: ['a'], timeout_seconds: 0 }, 'timeout_seconds'],
])('%s is refused before the node hears of it', async (_what, body, field) => {
  const before = rig.node.count('createProcess')
  const answer = await rig.call('POST', `/v1/sandboxes/${id}/commands`, body)
  expect([answer.status, (answer.body['details'] as { field: string }).field]).toEqual([400, field])
  expect(rig.node.count('createProcess')).toBe(before)
})

test('a command on a sandbox that is being created waits for it', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  rig.node.before = (call) => (call === 'create' ? promise : Promise.resolve())
  const made = await rig.call<{ sandbox: { id: string } }>('POST', '/v1/sandboxes', { template: 'base' })
  const answer = rig.call('POST', `/v1/sandboxes/${made.body.sandbox.id}/commands`, { argv: ['true'] })
  await expect.poll(() => rig.node.count('create', made.body.sandbox.id)).toBe(1)
  expect(rig.node.count('createProcess', made.body.sandbox.id)).toBe(0)
  resolve()
  expect((await answer).status).toBe(201)
})

test('a command on a failed sandbox is a failed precondition, on a deleted one not found', async () => {
  const failing = await rig.createRunning()
  rig.node.sandboxes.set(failing, rig.node.seen(failing, { state: 3, errorMessage: 'The machine died.' }))
  await rig.controlApi.report({ node: 'fake-node', sandboxes: [rig.node.seen(failing, { state: 3 })] })
  const failed = await rig.call('POST', `/v1/sandboxes/${failing}/commands`, { argv: ['true'] })
  expect([failed.status, failed.body['code']]).toEqual([409, 'failed_precondition'])
  await rig.call('DELETE', `/v1/sandboxes/${failing}`, undefined, { prefer: 'wait=10' })
  const deleted = await rig.call('POST', `/v1/sandboxes/${failing}/commands`, { argv: ['true'] })
  expect([deleted.status, deleted.body['code']]).toEqual([404, 'not_found'])
})

test('kill is SIGKILL to the tree; a signal goes to the group, or where it is told to', async () => {
  const { process } = await command({ argv: ['sleep'] })
  const path = `/v1/sandboxes/${id}/processes/${process.id}`
  const last = () => rig.node.calls.at(-1)
  await rig.call('POST', `${path}/signal`, { signal: 'TERM' })
  expect(last()).toBe(`signalProcess ${id} 15 ${SignalProcessRequest_Scope.GROUP}`)
  const { process: second } = await command({ argv: ['sleep'] })
  const killed = await rig.call<Process>('POST', `/v1/sandboxes/${id}/processes/${second.id}/kill`)
  expect(last()).toBe(`signalProcess ${id} 9 ${SignalProcessRequest_Scope.TREE}`)
  expect(killed.body).toMatchObject({ state: 'exited', signal: 9, exit_code: null, reason: 'signalled' })
  const before = rig.node.count('signalProcess')
  const again = await rig.call<Process>('POST', `/v1/sandboxes/${id}/processes/${second.id}/kill`)
  expect([again.status, again.body.state, rig.node.count('signalProcess')]).toEqual([200, 'exited', before])
  const bad = await rig.call('POST', `${path}/signal`, { signal: 'SIGNOPE' })
  expect((bad.body['details'] as { field: string }).field).toBe('signal')
})

test('processes are listed newest first, page by page', async () => {
  const other = await rig.createRunning()
  const made: string[] = []
  for (let index = 0; index < 3; index++) {
    const one = await rig.call<CommandAnswer>('POST', `/v1/sandboxes/${other}/commands`, {
      argv: [String(index)],
    })
    made.unshift(one.body.process.id)
  }
  const list = async (query: string) =>
    (await rig.call<ProcessPage>('GET', `/v1/sandboxes/${other}/processes${query}`)).body
  const first = await list('?limit=2')
  const second = await list(`?limit=2&cursor=${first.next_cursor}`)
  expect([...first.items, ...second.items].map((one) => one.id)).toEqual(made)
  expect(second.next_cursor).toBeNull()
})

test('processes are fresh from the node, and answered by their summaries when it does not hold them', async () => {
  const other = await rig.createRunning()
  const { body } = await rig.call<CommandAnswer>('POST', `/v1/sandboxes/${other}/commands`, {
    argv: ['true'],
  })
  const path = `/v1/sandboxes/${other}/processes`
  const process = rig.node.processes.get(body.process.id)
  if (!process) throw new TypeError('the node has no such process')
  Object.assign(process, { state: Process_State.RUNNING, pid: 7, startedAtUnixMs: BigInt(Date.now()) })
  expect((await rig.call<Process>('GET', `${path}/${body.process.id}`)).body).toMatchObject({ pid: 7 })
  await rig.controlApi.report({ node: 'fake-node', processes: [process] })
  await rig.call('DELETE', `/v1/sandboxes/${other}`, undefined, { prefer: 'wait=10' })
  const last = { id: body.process.id, pid: 7, state: 'exited', reason: 'sandbox_deleted' }
  expect((await rig.call<Process>('GET', `${path}/${body.process.id}`)).body).toMatchObject(last)
  expect((await rig.call<ProcessPage>('GET', path)).body.items).toMatchObject([last])
})

test('a further session leads to the same process with a token of its own', async () => {
  const { process, session } = await command({ argv: ['true'] })
  const further = await rig.call<SessionAnswer>(
    'POST',
    `/v1/sandboxes/${id}/processes/${process.id}/sessions`,
  )
  expect(further.status).toBe(201)
  expect(further.body.session.token).not.toBe(session.token)
  const allowed = await rig.controlApi.authorize({
    token: further.body.session.token,
    action: 1,
    sessionId: further.body.session.id,
  })
  expect(allowed).toMatchObject({ allowed: true, processId: process.id, sandboxId: id })
  const missing = await rig.call('POST', `/v1/sandboxes/${id}/processes/prcnone/sessions`)
  expect(missing.status).toBe(404)
})

test('templates are listed and found by name, tag and digest', async () => {
  const list = await rig.call<{ items: { digest: string; name: string }[] }>('GET', '/v1/templates')
  const [base] = list.body.items
  for (const name of ['base', 'base:latest', 'seed', base?.digest])
    expect((await rig.call('GET', `/v1/templates/${name}`)).body).toEqual(base)
  expect((await rig.call('GET', '/v1/templates/none')).status).toBe(404)
})
