import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Code, ConnectError } from '@connectrpc/connect'
import type { Operation, Sandbox } from '@space/contract'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { FakeNode } from './fake-node.ts'
import { startRig } from './rig.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'space-durability-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

interface Acknowledged {
  readonly sandbox?: string
  readonly deleted?: string
  readonly operation: string
}

/** Runs the server until it acknowledged `count` changes, then kills it as hard as can be. */
async function acknowledgeAndKill(count: number): Promise<Acknowledged[]> {
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL('./crashing-server.ts', import.meta.url)), folder],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const acknowledged: Acknowledged[] = []
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      acknowledged.push(JSON.parse(line))
      if (acknowledged.length === count) child.kill('SIGKILL')
    }
  } finally {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  return acknowledged
}

test('A1 A2: what was acknowledged survives kill -9, and its operations end', {
  timeout: 120_000,
}, async () => {
  const acknowledged = await acknowledgeAndKill(11)
  expect(acknowledged.length).toBeGreaterThanOrEqual(11)
  const rig = await startRig({ folder })
  try {
    const deleted = new Set(acknowledged.map((one) => one.deleted))
    for (const { sandbox, operation } of acknowledged) {
      const ended = await rig.call<Operation>('GET', `/v1/operations/${operation}`, undefined, {
        prefer: 'wait=20',
      })
      expect(ended.status).toBe(200)
      expect(ended.body.ended_at).not.toBeNull()
      if (sandbox === undefined) continue
      const { body } = await rig.call<Sandbox>('GET', `/v1/sandboxes/${sandbox}`)
      expect(body.state).toBe(deleted.has(sandbox) ? 'deleted' : 'running')
      expect(ended.body.state).toBe(deleted.has(sandbox) ? 'failed' : 'succeeded')
    }
    expect(rig.node.count('create')).toBeGreaterThan(4)
  } finally {
    await rig.close()
  }
})

test('A2: an operation survives any number of restarts and ends once the node answers', async () => {
  const node = new FakeNode()
  node.before = (call, signal) =>
    call === 'create'
      ? new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      : Promise.resolve()
  const first = await startRig({ folder, node })
  const made = await first.call<{ operation: Operation }>('POST', '/v1/sandboxes', { template: 'base' })
  await first.close()
  const second = await startRig({ folder, node })
  await second.close()
  node.before = () => Promise.resolve()
  const third = await startRig({ folder, node })
  const path = `/v1/operations/${made.body.operation.id}`
  const ended = await third.call<Operation>('GET', path, undefined, { prefer: 'wait=20' })
  expect(ended.body.state).toBe('succeeded')
  await third.close()
})

test('A2: a create whose node never answers fails at its deadline, and the node is asked to clear up', async () => {
  const node = new FakeNode()
  node.before = (call) =>
    call === 'create' ? Promise.reject(new ConnectError('down', Code.Unavailable)) : Promise.resolve()
  const rig = await startRig({
    folder,
    node,
    lifecycleLimits: { createDeadlineMs: 300, deleteDeadlineMs: 300 },
    sweepLimits: { everyMs: 50, deepEveryMs: 60_000, maxSandboxes: 10 },
  })
  const made = await rig.call<{ sandbox: Sandbox; operation: Operation }>(
    'POST',
    '/v1/sandboxes',
    { template: 'base' },
    { prefer: 'wait=20' },
  )
  expect(made.body.operation).toMatchObject({ state: 'failed', error: { code: 'service_unavailable' } })
  expect(made.body.sandbox.state).toBe('failed')
  expect(rig.node.count('create')).toBeGreaterThan(1)
  await expect.poll(() => rig.node.count('delete')).toBe(1)
  await rig.close()
})

test('A2: a delete whose node never confirms ends its operation, and is done when the node comes back', async () => {
  const node = new FakeNode()
  const rig = await startRig({
    folder,
    node,
    lifecycleLimits: { createDeadlineMs: 60_000, deleteDeadlineMs: 300 },
    sweepLimits: { everyMs: 50, deepEveryMs: 60_000, maxSandboxes: 10 },
  })
  const id = await rig.createRunning()
  node.before = (call) =>
    call === 'delete' ? Promise.reject(new ConnectError('down', Code.Unavailable)) : Promise.resolve()
  const removed = await rig.call<{ operation: Operation }>('DELETE', `/v1/sandboxes/${id}`, undefined, {
    prefer: 'wait=20',
  })
  expect(removed.body.operation).toMatchObject({ state: 'failed', error: { code: 'service_unavailable' } })
  expect((await rig.call<Sandbox>('GET', `/v1/sandboxes/${id}`)).body.state).toBe('deleting')
  node.before = () => Promise.resolve()
  const again = await rig.call<{ operation: Operation }>('DELETE', `/v1/sandboxes/${id}`, undefined, {
    prefer: 'wait=20',
  })
  expect(again.body.operation.state).toBe('succeeded')
  expect(node.sandboxes.has(id)).toBe(false)
  await rig.close()
})

test('the state folder is closed to others', async () => {
  const { statSync } = await import('node:fs')
  const inner = join(folder, 'control')
  const rig = await startRig({ folder: inner })
  const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)
  expect([mode(inner), mode(join(inner, 'keys')), mode(join(inner, 'control.sqlite'))]).toEqual([
    '700',
    '600',
    '600',
  ])
  await rig.close()
})
