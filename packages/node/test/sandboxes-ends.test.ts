/** What ends at the same time as something else: machines after the node let go, deletes while things start. */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Process_State } from '@space/contract/node-link'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { eventually } from './fixture/eventually.ts'
import { type NewCommand, newCommand, newSandbox, type TestNode, testNode } from './fixture/node.ts'
import { attach, attachRaw, collect } from './fixture/stream.ts'

let node: TestNode
let logged: string[]
beforeEach(async () => {
  logged = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void logged.push(line) })
  node = await testNode({ log })
})
afterEach(async () => {
  await node.close()
  await rm(node.home, { recursive: true, force: true })
})

function folder(sandboxId: string): string {
  return join(node.home, 'node', 'sandboxes', sandboxId)
}

function machine(sandboxId: string) {
  return node.host.machine(join(folder(sandboxId), 'machine'))
}

/** A process whose guest does not get to start it. */
async function startingCommand(sandboxId: string): Promise<NewCommand> {
  machine(sandboxId)?.setStalled(true)
  const command = await newCommand(node, sandboxId, ['sleep', '60'])
  const response = await attachRaw(command.eventsUrl, command.token)
  await response.body?.cancel()
  expect((await node.api.getProcess({ sandboxId, processId: command.processId })).state).toBe(
    Process_State.STARTING,
  )
  return command
}

test('a machine that ends after the node let go of it changes nothing and troubles nobody', async () => {
  await node.node.ensureBase('base')
  const sandboxId = await newSandbox(node)
  const command = await newCommand(node, sandboxId, ['sleep', '60'])
  await (await attachRaw(command.eventsUrl, command.token)).body?.cancel()
  await node.node.release()
  const before = await readFile(join(folder(sandboxId), 'sandbox.json'), 'utf8')
  logged = []
  const vm = machine(sandboxId)
  vm?.end({ reason: 'closed', detail: 'by the node' })
  await vm?.exited
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(logged).toEqual([])
  expect(await readFile(join(folder(sandboxId), 'sandbox.json'), 'utf8')).toBe(before)
})

test('a node that stops begins nothing: a create and a delete are told to try again', async () => {
  const sandboxId = await newSandbox(node)
  await node.node.release()
  await expect(node.api.delete({ sandboxId })).rejects.toThrow('stopping')
  await expect(newSandbox(node)).rejects.toThrow('stopping')
  await expect(newCommand(node, sandboxId, ['true'])).rejects.toThrow('stopping')
  expect(await readdir(join(node.home, 'node', 'sandboxes'))).toEqual([sandboxId])
  node = await node.restart()
  await node.api.delete({ sandboxId })
})

test('a delete ends a process that is still starting, and its reader sees why', async () => {
  const sandboxId = await newSandbox(node)
  const command = await startingCommand(sandboxId)
  const reading = collect(attach(command.eventsUrl, command.token))
  await node.api.delete({ sandboxId })
  expect((await reading).exit).toMatchObject({ reason: 'sandbox_deleted' })
  expect(await readdir(join(node.home, 'node', 'sandboxes'))).toEqual([])
  expect(logged).toEqual([])
})

test('a delete is finished although the node stops meanwhile, with a process still starting', async () => {
  await node.node.ensureBase('base')
  const sandboxId = await newSandbox(node)
  await startingCommand(sandboxId)
  const deleted = node.api.delete({ sandboxId })
  await Promise.all([deleted, node.node.release()])
  expect(await readdir(join(node.home, 'node', 'sandboxes'))).toEqual([])
  expect(node.host.machines).toEqual([])
  expect(logged).toEqual([])
})

test('a delete does not fail for a journal that cannot be written', async () => {
  const sandboxId = await newSandbox(node)
  const command = await startingCommand(sandboxId)
  const journal = join(folder(sandboxId), 'journal', command.processId)
  await rm(journal, { recursive: true })
  await writeFile(journal, 'in the way')
  await node.api.delete({ sandboxId })
  expect(await readdir(join(node.home, 'node', 'sandboxes'))).toEqual([])
  expect((await node.api.listProcesses({ sandboxId })).processes).toEqual([])
})

test('an exit the database does not take is logged, and taken from the agent at the next start', async () => {
  const sandboxId = await newSandbox(node)
  const { processId, ...command } = await newCommand(node, sandboxId, ['sh', '-c', 'echo x; sleep 0.3'])
  using database = new DatabaseSync(join(node.home, 'node', 'node.sqlite'), { timeout: 5000 })
  database.exec(`CREATE TRIGGER no_exit BEFORE UPDATE ON processes WHEN NEW.exited_at_ms > 0
    BEGIN SELECT RAISE(ABORT, 'not taken'); END`)
  const cut = await collect(attach(command.eventsUrl, command.token))
  expect([cut.stdout.toString(), cut.exit]).toEqual(['x\n', undefined])
  await eventually(() => logged.join('')).toContain('the end of a process could not be recorded')
  database.exec('DROP TRIGGER no_exit')
  node = await node.restart()
  await eventually(async () => (await node.api.getProcess({ sandboxId, processId })).exitCode).toBe(0)
})
