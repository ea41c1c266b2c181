import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Server, tier } from './server.ts'
import { rows, traces } from './traces.ts'

let server: Server

beforeAll(async () => {
  server = await Server.start()
})
afterAll(async () => {
  await server?.close()
})

async function cycle(): Promise<void> {
  const sandbox = await server.client.create()
  expect(await server.client.sh(sandbox, 'echo here')).toBe('here\n')
  await server.client.delete(sandbox)
}

/** The pool refills behind a create: what counts is what stays when that is done. */
async function settled() {
  for (let index = 0; index < 100; index += 1) {
    const first = traces(server.home, server.pid)
    await sleep(1500)
    const second = traces(server.home, server.pid)
    if (JSON.stringify(first) === JSON.stringify(second)) return second
  }
  throw new Error('the host does not come to rest')
}

test('D1: create, run, delete leaves no process, namespace, tap, mount, cgroup, socket, file or row', async () => {
  await cycle()
  const before = await settled()
  const rowsBefore = rows(join(server.home, 'node', 'node.sqlite'))
  for (let index = 0; index < tier(3, 50); index += 1) await cycle()
  const after = await settled()
  expect({ ...after, descriptors: 0 }).toEqual({ ...before, descriptors: 0 })
  expect(after.descriptors).toBeLessThanOrEqual(before.descriptors + 4)
  expect(rows(join(server.home, 'node', 'node.sqlite'))).toEqual(rowsBefore)
})

test('deleting a sandbox in use ends its streams with sandbox_deleted', async () => {
  const sandbox = await server.client.create()
  const { session } = await server.client.command(sandbox, ['sh', '-c', 'echo begun; sleep 999'])
  let exit: unknown
  for await (const event of server.client.events(session)) {
    if (event.name === 'stdout') await server.client.delete(sandbox)
    if (event.name === 'process_exited') exit = event.data
  }
  expect(exit).toMatchObject({ reason: 'sandbox_deleted' })
  await server.client.delete(sandbox)
})
