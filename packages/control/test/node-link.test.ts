import { Code, ConnectError } from '@connectrpc/connect'
import type { CommandAnswer, Sandbox } from '@space/contract'
import { AuthorizeRequest_Action as Action, ObservedSandbox_State as State } from '@space/contract/node-link'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Rig, startRig } from './rig.ts'

/** A clock a test moves by hand, going on from the present. */
class MovableClock {
  aheadMs = 0
  nowMs(): number {
    return Date.now() + this.aheadMs
  }
}

let rig: Rig
const clock = new MovableClock()
beforeAll(async () => {
  rig = await startRig({ clock })
})
afterAll(() => rig.close())
afterEach(() => {
  clock.aheadMs = 0
  rig.node.before = () => Promise.resolve()
})

const minute = 60_000

async function session(id: string): Promise<{ id: string; token: string; process: string }> {
  const { body } = await rig.call<CommandAnswer>('POST', `/v1/sandboxes/${id}/commands`, { argv: ['true'] })
  return { id: body.session.id, token: body.session.token, process: body.process.id }
}

const judge = (token: string, sessionId: string) =>
  rig.controlApi.authorize({ token, action: Action.SESSION, sessionId })

test('a session token opens its session for at most a second at a time, and nothing else', async () => {
  const sandboxId = await rig.createRunning()
  const [one, other] = [await session(sandboxId), await session(sandboxId)]
  const verdict = await judge(one.token, one.id)
  expect(verdict).toMatchObject({
    allowed: true,
    sandboxId,
    processId: one.process,
    accountId: rig.account.id,
  })
  expect(verdict.validMs).toBeLessThanOrEqual(1000)
  expect(await judge(one.token, other.id)).toMatchObject({ allowed: false, code: 'not_found' })
  expect(await judge(rig.token, one.id)).toMatchObject({ allowed: false, code: 'unauthorized' })
  const forged = `${one.token.slice(0, -2)}${one.token.endsWith('xx') ? 'yy' : 'xx'}`
  expect(await judge(forged, one.id)).toMatchObject({ allowed: false, code: 'unauthorized' })
  const exec = await rig.controlApi.authorize({ token: one.token, action: Action.EXEC, sandboxId })
  expect(exec).toMatchObject({ allowed: false, code: 'unauthorized' })
})

test('a session nobody attached to in ten minutes is closed; an attached one stays open', async () => {
  const sandboxId = await rig.createRunning()
  const [left, attached] = [await session(sandboxId), await session(sandboxId)]
  expect((await judge(attached.token, attached.id)).allowed).toBe(true)
  clock.aheadMs = 10 * minute + 1000
  expect(await judge(left.token, left.id)).toMatchObject({ allowed: false, code: 'unauthorized' })
  expect((await judge(attached.token, attached.id)).allowed).toBe(true)
})

test('a session ends a day after its process', async () => {
  const sandboxId = await rig.createRunning()
  const one = await session(sandboxId)
  expect((await judge(one.token, one.id)).allowed).toBe(true)
  const process = rig.node.processes.get(one.process)
  if (!process) throw new TypeError('the node has no such process')
  Object.assign(process, { state: 4, exitCode: 0, exitedAtUnixMs: BigInt(Date.now()) })
  await rig.controlApi.report({ node: 'fake-node', processes: [process] })
  clock.aheadMs = 23 * 60 * minute
  expect((await judge(one.token, one.id)).allowed).toBe(true)
  clock.aheadMs = 25 * 60 * minute
  expect((await judge(one.token, one.id)).allowed).toBe(false)
})

test('a session ends with its sandbox and with the token that made it', async () => {
  const sandboxId = await rig.createRunning()
  const helper = await rig.call<{ id: string; value: string }>('POST', '/v1/tokens', { name: 'helper' })
  const made = await rig.call<CommandAnswer>(
    'POST',
    `/v1/sandboxes/${sandboxId}/commands`,
    { argv: ['true'] },
    { authorization: `Bearer ${helper.body.value}` },
  )
  const { session: ofHelper } = made.body
  const mine = await session(sandboxId)
  expect((await judge(ofHelper.token, ofHelper.id)).allowed).toBe(true)
  await rig.call('DELETE', `/v1/tokens/${helper.body.id}`)
  expect(await judge(ofHelper.token, ofHelper.id)).toMatchObject({ allowed: false, code: 'unauthorized' })
  expect((await judge(mine.token, mine.id)).allowed).toBe(true)
  await rig.call('DELETE', `/v1/sandboxes/${sandboxId}`, undefined, { prefer: 'wait=10' })
  expect(await judge(mine.token, mine.id)).toMatchObject({ allowed: false, code: 'not_found' })
})

test('exec asks for the scope, and for a sandbox of the account', async () => {
  const sandboxId = await rig.createRunning()
  const exec = (token: string, id: string) =>
    rig.controlApi.authorize({ token, action: Action.EXEC, sandboxId: id })
  expect(await exec(rig.token, sandboxId)).toMatchObject({ allowed: true, accountId: rig.account.id })
  expect(await exec(rig.token, 'sbxnone')).toMatchObject({ allowed: false, code: 'not_found' })
  expect(await exec('spt_x', sandboxId)).toMatchObject({ allowed: false, code: 'unauthorized' })
  const reader = await rig.call<{ value: string }>('POST', '/v1/tokens', {
    name: 'r',
    scopes: ['sandboxes:read'],
  })
  expect(await exec(reader.body.value, sandboxId)).toMatchObject({ allowed: false, code: 'forbidden' })
  const files = await rig.controlApi.authorize({ token: rig.token, action: Action.FILES_READ, sandboxId })
  expect(files).toMatchObject({ allowed: false, code: 'forbidden' })
})

test('ensureRunning waits for a create, and says what a sandbox is when it does not run', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  rig.node.before = (call) => (call === 'create' ? promise : Promise.resolve())
  const made = await rig.call<{ sandbox: Sandbox }>('POST', '/v1/sandboxes', { template: 'base' })
  const sandboxId = made.body.sandbox.id
  let runs = false
  const ensured = rig.controlApi.ensureRunning({ sandboxId }).then(() => {
    runs = true
  })
  await expect.poll(() => rig.node.count('create', sandboxId)).toBe(1)
  expect(runs).toBe(false)
  resolve()
  await ensured
  await rig.controlApi.report({
    node: 'fake-node',
    sandboxes: [rig.node.seen(sandboxId, { state: State.FAILED })],
  })
  const failed = await rig.controlApi.ensureRunning({ sandboxId }).catch((thrown: unknown) => thrown)
  expect(ConnectError.from(failed).code).toBe(Code.FailedPrecondition)
  const missing = await rig.controlApi
    .ensureRunning({ sandboxId: 'sbxnone' })
    .catch((thrown: unknown) => thrown)
  expect(ConnectError.from(missing).code).toBe(Code.NotFound)
})

test('a reported failure is shown with its reason, and saying it again changes nothing', async () => {
  const sandboxId = await rig.createRunning()
  const seen = rig.node.seen(sandboxId, { state: State.FAILED, errorMessage: 'The machine died.' })
  const get = async () => (await rig.call<Sandbox>('GET', `/v1/sandboxes/${sandboxId}`)).body
  await rig.controlApi.report({ node: 'fake-node', sandboxes: [seen] })
  const first = await get()
  expect(first).toMatchObject({ state: 'failed', last_error: { message: 'The machine died.' } })
  await rig.controlApi.report({ node: 'fake-node', sandboxes: [seen] })
  expect(await get()).toEqual(first)
})

test('a running sandbox that its node lost is found out by a complete report', async () => {
  const [kept, lost] = [await rig.createRunning(), await rig.createRunning()]
  rig.node.sandboxes.delete(lost)
  await rig.controlApi.report({ node: 'fake-node', complete: true, sandboxes: [rig.node.seen(kept)] })
  const state = async (id: string) => (await rig.call<Sandbox>('GET', `/v1/sandboxes/${id}`)).body.state
  await expect.poll(() => state(lost)).toBe('failed')
  expect(await state(kept)).toBe('running')
})

test('what a node still holds of a deleted sandbox is taken away, what control never knew is left alone', async () => {
  const sandboxId = await rig.createRunning()
  await rig.call('DELETE', `/v1/sandboxes/${sandboxId}`, undefined, { prefer: 'wait=10' })
  rig.node.sandboxes.set(sandboxId, rig.node.seen(sandboxId))
  const stranger = rig.node.seen('sbxstranger')
  rig.node.sandboxes.set('sbxstranger', stranger)
  await rig.controlApi.report({ node: 'fake-node', sandboxes: [rig.node.seen(sandboxId), stranger] })
  await expect.poll(() => rig.node.sandboxes.has(sandboxId)).toBe(false)
  expect(rig.node.sandboxes.has('sbxstranger')).toBe(true)
})

test('a late word that a process runs does not undo that it exited', async () => {
  const sandboxId = await rig.createRunning()
  const { process: processId } = await session(sandboxId)
  const process = rig.node.processes.get(processId)
  if (!process) throw new TypeError('the node has no such process')
  Object.assign(process, { state: 4, exitCode: 3, exitedAtUnixMs: BigInt(Date.now()) })
  await rig.controlApi.report({ node: 'fake-node', processes: [process] })
  Object.assign(process, { state: 3, exitCode: undefined, exitedAtUnixMs: 0n })
  await rig.controlApi.report({ node: 'fake-node', processes: [process] })
  rig.node.before = (call) =>
    call === 'getProcess' ? Promise.reject(new ConnectError('down', Code.Unavailable)) : Promise.resolve()
  const answer = await rig.call('GET', `/v1/sandboxes/${sandboxId}/processes/${processId}`)
  expect(answer.body).toMatchObject({ state: 'exited', exit_code: 3 })
})
