/** On real machines: what the base snapshot promises, and what only the node's own interfaces show. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { ObservedSandbox_State } from '@space/contract/node-link'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listBases } from '../src/snapshots/base.ts'
import { newCommand, newId } from './fixture/node.ts'
import { type RealNode, realNode } from './fixture/real-node.ts'
import { attach, collect } from './fixture/stream.ts'

let node: RealNode
beforeAll(async () => {
  node = await realNode()
})
afterAll(async () => {
  await node.close()
})

async function create(shape: { vcpus: number; memoryMib: number; diskMib: number }): Promise<string> {
  const sandboxId = newId('sandbox')
  const made = await node.api.create({
    sandboxId,
    templateDigest: node.templateDigest,
    shape,
    env: { GREETING: 'hello' },
  })
  expect([made.state, made.errorMessage]).toEqual([ObservedSandbox_State.RUNNING, ''])
  return sandboxId
}

async function sh(sandboxId: string, script: string): Promise<string> {
  const command = await newCommand(node as never, sandboxId, ['sh', '-c', script])
  const read = await collect(attach(command.eventsUrl, command.token))
  expect([read.exit?.['exit_code'], read.stderr.toString()]).toEqual([0, ''])
  return read.stdout.toString()
}

function basesOf(): Promise<{ vcpus: number; memoryMib: number }[]> {
  return listBases(join(node.home, 'node', 'templates', node.templateDigest.slice('sha256:'.length)))
}

test('the first sandbox of a shape boots, answers and leaves its base snapshot; the next ones are restored and differ', async () => {
  const shape = { vcpus: 1, memoryMib: 512, diskMib: 0 }
  const facts =
    'cat /proc/sys/kernel/random/boot_id; hostname; echo $GREETING; date +%s; head -c 16 /dev/urandom | base64'
  const booted = await create(shape)
  const [bootId] = (await sh(booted, facts)).split('\n')
  await expect.poll(basesOf, { timeout: 120_000, interval: 500 }).toEqual([{ vcpus: 1, memoryMib: 512 }])
  await node.api.delete({ sandboxId: booted })
  const restored = [await create(shape), await create(shape)]
  const told = await Promise.all(restored.map(async (id) => (await sh(id, facts)).split('\n')))
  expect(told.map(([id]) => id === bootId)).toEqual([false, false])
  for (const id of restored)
    expect(await readdir(join(node.home, 'node', 'sandboxes', id))).toContain('frozen-0.qcow2')
  expect(told.map(([, hostname]) => hostname)).toEqual(restored)
  expect(told.map(([, , greeting]) => greeting)).toEqual(['hello', 'hello'])
  for (const [, , , seconds] of told) expect(Math.abs(Number(seconds) - Date.now() / 1000)).toBeLessThan(30)
  expect(told[0]?.[4]).not.toBe(told[1]?.[4])
  for (const sandboxId of restored) await node.api.delete({ sandboxId })
  expect(await readdir(join(node.home, 'node', 'sandboxes'))).toEqual([])
})

test('a disk larger than the template is there for the guest', async () => {
  const sandboxId = await create({ vcpus: 1, memoryMib: 512, diskMib: 12_288 })
  const [kib] = (await sh(sandboxId, 'df -k --output=size / | tail -1')).trim().split('\n')
  expect(Number(kib)).toBeGreaterThan(11 * 2 ** 20)
  await node.api.delete({ sandboxId })
})

test('a node that starts again adopts the machine and follows its processes to the end', async () => {
  const sandboxId = await create({ vcpus: 1, memoryMib: 512, diskMib: 0 })
  const command = await newCommand(node as never, sandboxId, [
    'sh',
    '-c',
    'for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.5; done',
  ])
  for await (const { event } of attach(command.eventsUrl, command.token)) if (event === 'stdout') break
  node = await node.restart()
  const url = `${node.url}/v1/sessions/${command.sessionId}/events`
  const read = await collect(attach(url, command.token))
  expect(read.stdout.toString()).toBe([1, 2, 3, 4, 5, 6, 7, 8].map((i) => `line ${i}\n`).join(''))
  expect(read.exit).toMatchObject({ exit_code: 0 })
  await node.api.delete({ sandboxId })
})
