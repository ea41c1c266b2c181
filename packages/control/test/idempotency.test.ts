import { Code, ConnectError } from '@connectrpc/connect'
import type { CommandAnswer, CreatedToken } from '@space/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Rig, startRig } from './rig.ts'

let rig: Rig
let sandboxId: string
beforeAll(async () => {
  rig = await startRig()
  sandboxId = await rig.createRunning()
})
afterAll(() => rig.close())

const withKey = (key: string) => ({ 'idempotency-key': key })

test('twenty creates at once with one key make one sandbox and give one answer', async () => {
  const before = rig.node.count('create')
  const answers = await Promise.all(
    Array.from({ length: 20 }, () =>
      rig.call('POST', '/v1/sandboxes', { template: 'base' }, withKey('twenty')),
    ),
  )
  expect(new Set(answers.map((answer) => JSON.stringify(answer.body))).size).toBe(1)
  expect(new Set(answers.map((answer) => answer.headers.get('location'))).size).toBe(1)
  expect(answers.filter((answer) => answer.headers.get('idempotent-replayed') === null)).toHaveLength(1)
  await expect.poll(() => rig.node.count('create')).toBe(before + 1)
})

test('the same key with another request is a conflict: other body, other path, other query', async () => {
  await rig.call('POST', '/v1/sandboxes', { template: 'base' }, withKey('one'))
  for (const [method, path, body] of [
    ['POST', '/v1/sandboxes', { template: 'base', metadata: {} }],
    ['POST', `/v1/sandboxes/${sandboxId}/commands`, { argv: ['true'] }],
    ['DELETE', `/v1/sandboxes/${sandboxId}`, undefined],
  ] as const) {
    const answer = await rig.call(method, path, body, withKey('one'))
    expect([answer.status, answer.body['code']]).toEqual([409, 'idempotency_conflict'])
  }
})

test('the order of fields and the address used make no other request', async () => {
  const request = { template: 'base', metadata: { a: '1', b: '2' } }
  const reordered = '{"metadata":{"b":"2","a":"1"},"template":"base"}'
  const first = await rig.call('POST', '/v1/sandboxes', request, withKey('order'))
  const second = await rig.call('POST', '/api/v1/sandboxes', reordered, withKey('order'))
  expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([202, 'true'])
  expect(second.body).toEqual(first.body)
})

test('keys belong to an account', async () => {
  const account = await rig.call<{ id: string }>('POST', '/v1/accounts', { name: 'second' })
  const token = await rig.call<CreatedToken>('POST', '/v1/tokens', { name: 'x', account: account.body.id })
  const first = await rig.call('POST', '/v1/sandboxes', { template: 'base' }, withKey('shared'))
  const other = await rig.call(
    'POST',
    '/v1/sandboxes',
    { template: 'base' },
    { ...withKey('shared'), authorization: `Bearer ${token.body.value}` },
  )
  expect(other.headers.get('idempotent-replayed')).toBeNull()
  expect(other.body['sandbox']).not.toEqual(first.body['sandbox'])
})

test('twenty commands at once with one key make one process, and each answer holds its token', async () => {
  const before = rig.node.processes.size
  const answers = await Promise.all(
    Array.from({ length: 20 }, () =>
      rig.call<CommandAnswer>(
        'POST',
        `/v1/sandboxes/${sandboxId}/commands`,
        { argv: ['true'] },
        withKey('command'),
      ),
    ),
  )
  expect(new Set(answers.map((answer) => JSON.stringify(answer.body))).size).toBe(1)
  expect(answers[0]?.body.session.token).toMatch(/^spt_s/)
  expect(rig.node.processes.size).toBe(before + 1)
})

test('a command whose answer was lost on the way is joined by the next try, not doubled', async () => {
  const before = rig.node.processes.size
  const send = () =>
    rig.call('POST', `/v1/sandboxes/${sandboxId}/commands`, { argv: ['true'] }, withKey('lost'))
  let lose = true
  const { client } = rig.node
  const original = client.createProcess
  Object.assign(client, {
    createProcess: async (...args: Parameters<typeof original>) => {
      const made = await original(...args)
      if (lose) throw new ConnectError('the link broke', Code.Unavailable)
      return made
    },
  })
  const first = await send()
  expect([first.status, first.body['retryable']]).toEqual([503, true])
  lose = false
  const second = await send()
  expect(second.status).toBe(201)
  expect(rig.node.processes.size).toBe(before + 1)
  Object.assign(client, { createProcess: original })
})

test('a request that was refused may be corrected under the same key', async () => {
  const path = `/v1/sandboxes/${sandboxId}/processes/prcmissing/kill`
  const refused = await rig.call('POST', path, undefined, withKey('corrected'))
  expect(refused.status).toBe(404)
  const made = await rig.call(
    'POST',
    `/v1/sandboxes/${sandboxId}/commands`,
    { argv: ['a'] },
    withKey('corrected'),
  )
  expect(made.status).toBe(201)
})

test('a signal with a key is sent once', async () => {
  const made = await rig.call<CommandAnswer>('POST', `/v1/sandboxes/${sandboxId}/commands`, {
    argv: ['sleep'],
  })
  const path = `/v1/sandboxes/${sandboxId}/processes/${made.body.process.id}/signal`
  const before = rig.node.count('signalProcess')
  const first = await rig.call('POST', path, { signal: 'SIGUSR1' }, withKey('signal'))
  const second = await rig.call('POST', path, { signal: 'SIGUSR1' }, withKey('signal'))
  expect([first.status, second.headers.get('idempotent-replayed')]).toEqual([200, 'true'])
  expect(second.body).toEqual(first.body)
  expect(rig.node.count('signalProcess')).toBe(before + 1)
})

test('a token is created once, its value is given again, and stored nowhere', async () => {
  const create = () => rig.call<CreatedToken>('POST', '/v1/tokens', { name: 'once' }, withKey('token'))
  const [first, second] = [await create(), await create()]
  expect(second.headers.get('idempotent-replayed')).toBe('true')
  expect(second.body).toEqual(first.body)
  expect(first.body.value).toMatch(/^spt_a/)
})
