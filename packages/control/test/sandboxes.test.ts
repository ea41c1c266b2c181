import type { Operation, Sandbox, SandboxPage } from '@space/contract'
import { PublicError } from '@space/contract'
import { toConnectError } from '@space/contract/node-link'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { baseDigest } from './fake-node.ts'
import { type Rig, startRig } from './rig.ts'

let rig: Rig
beforeAll(async () => {
  rig = await startRig()
})
afterAll(() => rig.close())
afterEach(() => {
  rig.node.before = () => Promise.resolve()
})

interface Created {
  readonly sandbox: Sandbox
  readonly operation: Operation
}

const wait = { prefer: 'wait=10' }

test('a create is accepted at once and ends running, with all that is known of it', async () => {
  const request = {
    template: 'base',
    metadata: { run: '7' },
    resources: { vcpus: 2 },
    env: { LANG: 'C' },
    lifetime_seconds: 3600,
  }
  const made = await rig.call<Created>('POST', '/v1/sandboxes', request)
  expect(made.status).toBe(202)
  expect(made.headers.get('location')).toBe(`/v1/sandboxes/${made.body.sandbox.id}`)
  expect(made.body.sandbox).toMatchObject({
    state: 'creating',
    template: { ref: 'base', digest: baseDigest },
    resources: { vcpus: 2, memory_mib: 1024, disk_mib: 8192 },
    metadata: { run: '7' },
    last_error: null,
    urls: { data_plane: 'http://127.0.0.1:7071' },
  })
  const ended = await rig.call<Operation>('GET', `/v1/operations/${made.body.operation.id}`, undefined, wait)
  expect(ended.headers.get('preference-applied')).toBe('wait=10')
  expect(ended.body).toMatchObject({
    kind: 'create',
    state: 'succeeded',
    error: null,
    result: { sandboxes: [made.body.sandbox.id], snapshot: null, template: null },
  })
  const { body } = await rig.call<Sandbox>('GET', `/v1/sandboxes/${made.body.sandbox.id}`)
  expect(body).toMatchObject({ state: 'running', node: 'fake-node', environment: { id: 'fake' } })
  expect(Date.parse(body.expires_at ?? '') - Date.parse(body.created_at)).toBe(3_600_000)
  expect(body.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
})

test.each(['base', 'base:latest', 'seed:latest', 'seed', baseDigest])(
  '%s means the base template, and the sandbox reports its digest',
  async (reference) => {
    const made = await rig.call<Created>('POST', '/v1/sandboxes', { template: reference })
    expect(made.body.sandbox.template).toEqual({ ref: reference, digest: baseDigest })
  },
)

test('a create the node refuses fails, and says why in the operation and the sandbox', async () => {
  rig.node.before = (call) =>
    call === 'create'
      ? Promise.reject(
          toConnectError(
            new PublicError('capacity_unavailable', 'The disk is full.', {
              details: { reason: 'out_of_disk' },
            }),
          ),
        )
      : Promise.resolve()
  const { body } = await rig.call<Created>('POST', '/v1/sandboxes', { template: 'base' }, wait)
  const error = {
    code: 'capacity_unavailable',
    message: 'The disk is full.',
    details: { reason: 'out_of_disk' },
    retryable: true,
  }
  expect(body.operation).toMatchObject({ state: 'failed', error, result: null })
  expect(body.sandbox).toMatchObject({ state: 'failed', last_error: error })
  const removed = await rig.call<{ operation: Operation }>(
    'DELETE',
    `/v1/sandboxes/${body.sandbox.id}`,
    undefined,
    wait,
  )
  expect(removed.body.operation.state).toBe('succeeded')
})

test('a delete ends deleted; asking again is answered the same way by an operation that has succeeded', async () => {
  const id = await rig.createRunning()
  const first = await rig.call<{ operation: Operation }>('DELETE', `/v1/sandboxes/${id}`, undefined, wait)
  expect([first.status, first.body.operation.state]).toEqual([202, 'succeeded'])
  expect(rig.node.sandboxes.has(id)).toBe(false)
  expect((await rig.call<Sandbox>('GET', `/v1/sandboxes/${id}`)).body.state).toBe('deleted')
  const again = await rig.call<{ operation: Operation }>('DELETE', `/v1/sandboxes/${id}`)
  expect([again.status, again.body.operation.state]).toEqual([202, 'succeeded'])
  expect(again.body.operation.id).not.toBe(first.body.operation.id)
})

test('deletes of one sandbox join the one that is under way', async () => {
  const id = await rig.createRunning()
  const { promise, resolve } = Promise.withResolvers<void>()
  rig.node.before = (call) => (call === 'delete' ? promise : Promise.resolve())
  const [one, other] = await Promise.all(
    [0, 1].map(() => rig.call<{ operation: Operation }>('DELETE', `/v1/sandboxes/${id}`)),
  )
  expect(one?.body.operation.id).toBe(other?.body.operation.id)
  resolve()
})

test('a delete overtakes a create that hangs: it is cut short, ends as failed, and nothing is left', async () => {
  rig.node.before = (call, signal) =>
    call === 'create'
      ? new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      : Promise.resolve()
  const made = await rig.call<Created>('POST', '/v1/sandboxes', { template: 'base' })
  const { id } = made.body.sandbox
  await expect.poll(() => rig.node.count('create', id)).toBe(1)
  const removed = await rig.call<{ operation: Operation }>('DELETE', `/v1/sandboxes/${id}`, undefined, wait)
  expect(removed.body.operation.state).toBe('succeeded')
  const create = await rig.call<Operation>('GET', `/v1/operations/${made.body.operation.id}`)
  expect(create.body).toMatchObject({ state: 'failed', error: { code: 'conflict' } })
  expect([rig.node.count('create', id), rig.node.count('delete', id)]).toEqual([1, 1])
  expect(rig.node.sandboxes.has(id)).toBe(false)
})

test('a sandbox ends when its lifetime is over, and PATCH moves the end either way', async () => {
  const short = await rig.createRunning({ lifetime_seconds: 1 })
  const kept = await rig.createRunning({ lifetime_seconds: 1 })
  const patched = await rig.call<Sandbox>('PATCH', `/v1/sandboxes/${kept}`, { expires_at: null })
  expect([patched.status, patched.body.expires_at]).toEqual([200, null])
  await expect
    .poll(async () => (await rig.call<Sandbox>('GET', `/v1/sandboxes/${short}`)).body.state, {
      timeout: 10_000,
    })
    .toBe('deleted')
  expect((await rig.call<Sandbox>('GET', `/v1/sandboxes/${kept}`)).body.state).toBe('running')
})

test('PATCH replaces metadata, lists find it by the new pairs alone, and a deleted sandbox takes none', async () => {
  const id = await rig.createRunning({ metadata: { a: '1', b: '2' } })
  const patched = await rig.call<Sandbox>('PATCH', `/v1/sandboxes/${id}`, { metadata: { c: '3' } })
  expect(patched.body.metadata).toEqual({ c: '3' })
  const found = async (query: string) =>
    (await rig.call<SandboxPage>('GET', `/v1/sandboxes?${query}`)).body.items.map((one) => one.id)
  expect(await found('metadata.c=3')).toEqual([id])
  expect(await found('metadata.a=1')).toEqual([])
  await rig.call('DELETE', `/v1/sandboxes/${id}`, undefined, wait)
  expect((await rig.call('PATCH', `/v1/sandboxes/${id}`, { metadata: {} })).body['code']).toBe(
    'failed_precondition',
  )
})

test('Prefer: wait comes back when the time is up, with the operation still under way', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  rig.node.before = (call) => (call === 'create' ? promise : Promise.resolve())
  const startedMs = performance.now()
  const { body } = await rig.call<Created>(
    'POST',
    '/v1/sandboxes',
    { template: 'base' },
    { prefer: 'wait=1' },
  )
  expect(performance.now() - startedMs).toBeGreaterThan(900)
  expect([body.sandbox.state, body.operation.state]).toEqual(['creating', 'running'])
  resolve()
})
