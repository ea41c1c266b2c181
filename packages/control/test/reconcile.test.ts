import { DatabaseSync } from 'node:sqlite'
import { Code, ConnectError } from '@connectrpc/connect'
import type { Operation, Sandbox } from '@space/contract'
import { ObservedSandbox_State } from '@space/contract/node-link'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Rig, startRig } from './rig.ts'

const sweepLimits = { everyMs: 50, deepEveryMs: 200, maxSandboxes: 10 }
let rig: Rig
beforeAll(async () => {
  rig = await startRig({ sweepLimits })
})
afterAll(() => rig.close())
afterEach(() => {
  rig.node.before = () => Promise.resolve()
  rig.node.sandboxes.clear()
})

const wait = { prefer: 'wait=20' }
interface Created {
  readonly sandbox: Sandbox
  readonly operation: Operation
}

/** Writes behind the server's back, as a crash or a bug would have left it. */
function tamper(folder: string, sql: string, ...values: string[]): void {
  const database = new DatabaseSync(`${folder}/control.sqlite`)
  database.prepare(sql).run(...values)
  database.close()
}

test('a node that is away for a while is asked again until it answers', async () => {
  let tries = 0
  rig.node.before = (call) =>
    call === 'create' && ++tries < 4
      ? Promise.reject(new ConnectError('down', Code.Unavailable))
      : Promise.resolve()
  const { body } = await rig.call<Created>('POST', '/v1/sandboxes', { template: 'base' }, wait)
  expect([body.operation.state, tries]).toEqual(['succeeded', 4])
})

test('a node that is still making the sandbox is asked again', async () => {
  rig.node.before = (call) => {
    if (call === 'create')
      for (const [id, seen] of rig.node.sandboxes)
        rig.node.sandboxes.set(id, { ...seen, state: ObservedSandbox_State.RUNNING })
    return Promise.resolve()
  }
  const { seen } = rig.node
  rig.node.seen = (id) => seen.call(rig.node, id, { state: ObservedSandbox_State.CREATING })
  const { body } = await rig.call<Created>('POST', '/v1/sandboxes', { template: 'base' }, wait)
  rig.node.seen = seen
  expect([body.sandbox.state, rig.node.count('create', body.sandbox.id)]).toEqual(['running', 2])
})

test('an ask that got lost is put back by the sweep', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const id = await rig.createRunning()
  rig.node.before = (call) => (call === 'delete' ? promise : Promise.resolve())
  const removed = await rig.call<{ operation: Operation }>('DELETE', `/v1/sandboxes/${id}`)
  await expect.poll(() => rig.node.count('delete', id)).toBe(1)
  tamper(rig.folder, 'delete from asks where sandbox_id = ?', id)
  await expect.poll(() => rig.node.count('delete', id)).toBe(2)
  resolve()
  const path = `/v1/operations/${removed.body.operation.id}`
  expect((await rig.call<Operation>('GET', path, undefined, wait)).body.state).toBe('succeeded')
})

test('a lease of another process is respected until it ends, then the work is taken over', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  rig.node.before = (call) => (call === 'create' ? promise : Promise.resolve())
  const made = await rig.call<Created>('POST', '/v1/sandboxes', { template: 'base' })
  const { id } = made.body.sandbox
  await expect.poll(() => rig.node.count('create', id)).toBe(1)
  const endsAtMs = Date.now() + 1200
  tamper(
    rig.folder,
    'update asks set lease_owner = ?, lease_until = ?, generation = generation + 1 where sandbox_id = ?',
    'another',
    String(endsAtMs),
    id,
  )
  await expect.poll(() => rig.node.count('create', id), { timeout: 10_000 }).toBe(2)
  expect(Date.now()).toBeGreaterThanOrEqual(endsAtMs)
  resolve()
  const path = `/v1/operations/${made.body.operation.id}`
  expect((await rig.call<Operation>('GET', path, undefined, wait)).body.state).toBe('succeeded')
})

test('a running sandbox that the node no longer holds is found by the sweep alone', async () => {
  const id = await rig.createRunning()
  rig.node.sandboxes.delete(id)
  await expect
    .poll(async () => (await rig.call<Sandbox>('GET', `/v1/sandboxes/${id}`)).body.state)
    .toBe('failed')
})

test('what is over is removed in time, and takes its rows along', async () => {
  const own = await startRig({ sweepLimits })
  const id = await own.createRunning({ metadata: { a: 'b' } })
  await own.call('POST', `/v1/sandboxes/${id}/commands`, { argv: ['true'] }, { 'idempotency-key': 'k' })
  await own.call('DELETE', `/v1/sandboxes/${id}`, undefined, wait)
  const old = String(Date.now() - 8 * 86_400_000)
  tamper(own.folder, 'update operations set ended_at = ?', old)
  tamper(own.folder, 'update sandboxes set deleted_at = ?', old)
  tamper(own.folder, 'update events set created_at = ?', old)
  tamper(own.folder, 'update requests set created_at = ?', old)
  const rows = () => {
    const database = new DatabaseSync(`${own.folder}/control.sqlite`, { readOnly: true })
    const tables = [
      'sandboxes',
      'sandbox_metadata',
      'operations',
      'processes',
      'sessions',
      'events',
      'requests',
      'asks',
    ]
    const counts = tables.map((table) =>
      Number(database.prepare(`select count(*) n from ${table}`).get()?.['n']),
    )
    database.close()
    return counts
  }
  expect(rows()[0]).toBe(1)
  await expect.poll(rows).toEqual([0, 0, 0, 0, 0, 0, 0, 0])
  expect((await own.call('GET', `/v1/sandboxes/${id}`)).status).toBe(404)
  await own.close()
})
