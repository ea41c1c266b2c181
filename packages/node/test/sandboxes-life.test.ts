import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ObservedSandbox_State, Process_State } from '@space/contract/node-link'
import { patternBytes } from '@space/testkit'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { eventually } from './fixture/eventually.ts'
import { reportedState } from './fixture/fake-control.ts'
import { newCommand, newId, newSandbox, type TestNode, templateDigest, testNode } from './fixture/node.ts'
import { attach, attachRaw, collect } from './fixture/stream.ts'

let node: TestNode
beforeEach(async () => {
  node = await testNode()
})
afterEach(async () => {
  await node.close()
})

const shape = { vcpus: 1, memoryMib: 1024, diskMib: 0 }
const { RUNNING, FAILED, DELETED } = ObservedSandbox_State

function folder(sandboxId: string): string {
  return join(node.home, 'node', 'sandboxes', sandboxId)
}

async function stateOf(sandboxId: string): Promise<ObservedSandbox_State | undefined> {
  return (await node.api.describe({ sandboxIds: [sandboxId] })).sandboxes[0]?.state
}

async function bases(): Promise<string[]> {
  const all = join(node.home, 'node', 'templates', templateDigest.slice(7), 'bases')
  return (await readdir(all).catch(() => [])).sort()
}

describe('create', () => {
  test('the first of a shape boots and leaves a base snapshot, the next is restored from it', async () => {
    const first = await newSandbox(node)
    expect(await stateOf(first)).toBe(RUNNING)
    await eventually(bases).toEqual(['1x1024'])
    await eventually(() => node.host.machines.length).toBe(1)
    const second = await newSandbox(node)
    expect(await readdir(folder(second))).toContain('frozen-0.qcow2')
    const secrets = await Promise.all(
      [first, second].map((id) => readFile(join(folder(id), 'link.json'), 'utf8')),
    )
    const base = await readFile(
      join(node.home, 'node', 'templates', templateDigest.slice(7), 'bases', '1x1024', 'manifest.json'),
      'utf8',
    )
    expect(
      new Set([...secrets.map((text) => JSON.parse(text).current), JSON.parse(base).linkSecret]).size,
    ).toBe(3)
  })

  test('wakes the guest as its own: name, environment, new generation, entropy', async () => {
    await newSandbox(node, { A: 'first' })
    await eventually(bases).toEqual(['1x1024'])
    const second = await newSandbox(node, { A: 'second' })
    const guest = node.host.machine(join(folder(second), 'machine'))?.guest
    expect(guest?.hostname).toBe(second)
    expect(guest?.environment).toMatchObject({ A: 'second', FROM: 'template' })
    expect(guest?.wakes.at(-1)?.entropy.length).toBeGreaterThanOrEqual(32)
    expect(guest?.frozen).toBe(false)
  })

  test('repeated with the same id it joins and makes one machine', async () => {
    const sandboxId = newId('sandbox')
    const request = { sandboxId, templateDigest, shape }
    const answers = await Promise.all([1, 2, 3].map(() => node.api.create(request)))
    expect(answers.map(({ state }) => state)).toEqual([RUNNING, RUNNING, RUNNING])
    expect((await node.api.create(request)).state).toBe(RUNNING)
    expect((await readdir(join(node.home, 'node', 'sandboxes'))).length).toBe(1)
  })

  test('a base that cannot be restored costs a boot and is made anew', async () => {
    await newSandbox(node)
    await eventually(bases).toEqual(['1x1024'])
    node.host.faults.restore = new Error('the device state does not fit')
    const second = await newSandbox(node)
    expect(await stateOf(second)).toBe(RUNNING)
    expect(await readdir(folder(second))).not.toContain('frozen-0.qcow2')
    await eventually(() => node.host.machines.length).toBe(2)
    await newSandbox(node)
    await eventually(() => node.host.machines.length).toBe(3)
    await eventually(bases).toEqual(['1x1024'])
  })

  test('fails by name: no such template, a shape too large, a guest that never answers', async () => {
    await node.close()
    node = await testNode({ settings: { bootTimeoutMs: 1000 } })
    const missing = await node.api.create({
      sandboxId: newId('sandbox'),
      templateDigest: `sha256:${'0'.repeat(64)}`,
      shape,
    })
    expect(missing).toMatchObject({
      state: FAILED,
      error: { code: 'failed_precondition', reason: 'template_missing' },
    })
    const large = await node.api.create({
      sandboxId: newId('sandbox'),
      templateDigest,
      shape: { ...shape, vcpus: 64 },
    })
    expect(large).toMatchObject({
      state: FAILED,
      error: { code: 'invalid_request', reason: 'shape_too_large' },
    })
    node.host.faults.stallBoot = true
    const silent = await node.api.create({ sandboxId: newId('sandbox'), templateDigest, shape })
    expect(silent).toMatchObject({
      state: FAILED,
      error: { reason: 'guest_did_not_answer', retryable: true },
    })
    expect(node.host.machines.length).toBe(0)
    for (const { sandboxId } of [missing, large, silent]) await node.api.delete({ sandboxId })
    expect(await readdir(join(node.home, 'node', 'sandboxes'))).toEqual([])
  })

  test('a shape between two is rounded up, and the sandbox shows what it got', async () => {
    const made = await node.api.create({
      sandboxId: newId('sandbox'),
      templateDigest,
      shape: { vcpus: 3, memoryMib: 300, diskMib: 9000 },
    })
    expect(made.shape).toMatchObject({ vcpus: 4, memoryMib: 512, diskMib: 9000 })
    expect(made.environment).toMatchObject({ id: 'fake', kernel: '6.1-fake' })
  })
})

describe('delete', () => {
  test('leaves nothing, ends open streams by name, and may be repeated', async () => {
    const sandboxId = await newSandbox(node)
    await eventually(bases).toEqual(['1x1024'])
    const command = await newCommand(node, sandboxId, ['sleep', '60'])
    const reading = collect(attach(command.eventsUrl, command.token))
    await eventually(
      async () => (await node.api.getProcess({ sandboxId, processId: command.processId })).state,
    ).toBe(Process_State.RUNNING)
    await node.api.delete({ sandboxId })
    expect((await reading).exit).toMatchObject({ reason: 'sandbox_deleted' })
    expect(await readdir(join(node.home, 'node', 'sandboxes'))).toEqual([])
    expect(node.host.machines.length).toBe(0)
    expect((await node.api.listProcesses({ sandboxId })).processes).toEqual([])
    await eventually(() => reportedState(node.control, sandboxId)).toBe(DELETED)
    await node.api.delete({ sandboxId })
  })

  test('while it is made gives up the making', async () => {
    node.host.faults.bootMs = 2000
    const sandboxId = newId('sandbox')
    const making = node.api.create({ sandboxId, templateDigest, shape })
    making.catch(() => undefined)
    await eventually(() => readdir(folder(sandboxId)).catch(() => [])).toContain('sandbox.json')
    await node.api.delete({ sandboxId })
    await expect(making).rejects.toThrow('deleted')
    expect(await readdir(join(node.home, 'node', 'sandboxes'))).toEqual([])
  })
})

describe('a machine that ends', () => {
  test('makes the sandbox failed and its processes lost, with the reason, and streams end', async () => {
    const sandboxId = await newSandbox(node)
    const command = await newCommand(node, sandboxId, ['sh', '-c', 'echo before; sleep 60'])
    const reading = collect(attach(command.eventsUrl, command.token))
    await eventually(
      async () => (await node.api.getProcess({ sandboxId, processId: command.processId })).outputBytes,
    ).toBe(7n)
    node.host.machine(join(folder(sandboxId), 'machine'))?.end({ reason: 'guest_panicked', detail: 'a test' })
    const read = await reading
    expect([read.stdout.toString(), read.exit?.['reason']]).toEqual(['before\n', 'lost'])
    await eventually(() => stateOf(sandboxId)).toBe(FAILED)
    await eventually(() => reportedState(node.control, sandboxId)).toBe(FAILED)
    const late = await newCommand(node, sandboxId, ['true']).then(
      () => 'taken',
      () => 'refused',
    )
    expect(late).toBe('refused')
    await node.api.delete({ sandboxId })
    expect(await readdir(join(node.home, 'node', 'sandboxes'))).toEqual([])
  })
})

describe('a node that starts again', () => {
  test('adopts the machine, and a stream continues at its exact byte', async () => {
    const sandboxId = await newSandbox(node)
    const bytes = 6_000_000
    const command = await newCommand(node, sandboxId, ['print', String(bytes), '20000'])
    const chunks: Buffer[] = []
    let lastEventId = ''
    let seen = 0
    for await (const event of attach(command.eventsUrl, command.token)) {
      lastEventId = event.id
      if (event.event === 'stdout') chunks.push(Buffer.from(String(event.data['data']), 'base64'))
      seen += chunks.at(-1)?.length ?? 0
      if (seen > 1_000_000) break
    }
    const before = node.host.started
    node = await node.restart()
    expect(await stateOf(sandboxId)).toBe(RUNNING)
    expect(node.host.started).toBe(before)
    const eventsUrl = `${node.url}/v1/sessions/${command.sessionId}/events`
    const rest = await collect(attach(eventsUrl, command.token, { lastEventId }))
    expect(Buffer.concat([...chunks, rest.stdout]).equals(patternBytes(0, bytes))).toBe(true)
    expect(rest.exit).toMatchObject({ exit_code: 0 })
    const again = await collect(attach(eventsUrl, command.token))
    expect(again.stdout.length).toBe(bytes)
    const guest = node.host.machine(join(folder(sandboxId), 'machine'))?.guest
    await eventually(() => guest?.processes.size).toBe(0)
  })

  test('tells a machine that ended meanwhile as failed, and its processes as lost', async () => {
    const sandboxId = await newSandbox(node)
    const command = await newCommand(node, sandboxId, ['sleep', '60'])
    const response = await attachRaw(command.eventsUrl, command.token)
    await response.body?.cancel()
    const { home, host } = node
    await node.node.release()
    host
      .machine(join(home, 'node', 'sandboxes', sandboxId, 'machine'))
      ?.end({ reason: 'vmm_killed', detail: 'a test' })
    node = await node.restart()
    expect((await node.api.describe({})).sandboxes).toMatchObject([
      { state: FAILED, error: { reason: 'machine_gone' } },
    ])
    const eventsUrl = `${node.url}/v1/sessions/${command.sessionId}/events`
    expect((await collect(attach(eventsUrl, command.token))).exit).toMatchObject({ reason: 'lost' })
  })

  test('clears what was half made or half deleted', async () => {
    const sandboxId = await newSandbox(node)
    const { home } = node
    await node.node.release()
    const path = join(home, 'node', 'sandboxes', sandboxId, 'sandbox.json')
    const { writeFile, mkdir } = await import('node:fs/promises')
    const record = JSON.parse(await readFile(path, 'utf8'))
    await writeFile(path, JSON.stringify({ ...record, phase: 'deleting' }))
    await mkdir(join(home, 'node', 'sandboxes', newId('sandbox')))
    node = await node.restart()
    expect((await node.api.describe({})).sandboxes).toEqual([])
    expect(await readdir(join(home, 'node', 'sandboxes'))).toEqual([])
    expect(node.host.machines.length).toBe(0)
  })
})
