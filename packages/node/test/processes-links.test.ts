import { join } from 'node:path'
import { patternBytes } from '@space/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually } from './fixture/eventually.ts'
import { newCommand, newSandbox, type TestNode, testNode } from './fixture/node.ts'
import { attach, collect } from './fixture/stream.ts'

let node: TestNode
let sandbox = ''
beforeAll(async () => {
  node = await testNode()
  sandbox = await newSandbox(node)
})
afterAll(async () => {
  await node.close()
})

function machine() {
  return node.host.machine(join(node.home, 'node', 'sandboxes', sandbox, 'machine'))
}

/** Links that break soon are taken up after ever longer waits: a few cuts show as much as many. */
const maxCuts = 4

/** Cuts the guest channel some times while something happens. */
async function whileCutting<T>(work: Promise<T>): Promise<{ readonly result: T; readonly cuts: number }> {
  let cuts = 0
  const timer = setInterval(() => {
    if (cuts < maxCuts) machine()?.cutChannel()
    cuts += 1
  }, 250)
  try {
    return { result: await work, cuts }
  } finally {
    clearInterval(timer)
  }
}

test('output is whole and in order however often the link to the guest is lost', async () => {
  const bytes = 2_000_000
  const command = await newCommand(node, sandbox, ['sh', '-c', `sleep 0.3; print ${bytes} 5003; sleep 0.6`])
  const { result, cuts } = await whileCutting(collect(attach(command.eventsUrl, command.token)))
  expect(cuts).toBeGreaterThan(1)
  expect(result.stdout.equals(patternBytes(0, bytes))).toBe(true)
  expect(result.exit).toMatchObject({ exit_code: 0, reason: 'exited' })
})

test('stdin is whole and in order however often the link to the guest is lost', async () => {
  const bytes = new Uint8Array(2_000_000).map((_, index) => (index * 7) % 253)
  const command = await newCommand(node, sandbox, ['cat'], { stdinPipe: true })
  const reading = collect(attach(command.eventsUrl, command.token))
  const headers = { authorization: `Bearer ${command.token}` }
  const url = command.eventsUrl.replace(/events$/, 'stdin')
  const writing = async () => {
    for (let from = 0; from < bytes.length; from += 200_000) {
      const body = bytes.slice(from, from + 200_000)
      const answer = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'stdin-offset': String(from) },
        body,
      })
      expect(await answer.json()).toEqual({ next_offset: from + body.length })
      await new Promise((resolve) => setTimeout(resolve, 60))
    }
  }
  const { cuts } = await whileCutting(writing())
  expect(cuts).toBeGreaterThan(1)
  await fetch(`${url}/close`, { method: 'POST', headers })
  expect((await reading).stdout.equals(Buffer.from(bytes))).toBe(true)
})

test('what ended while the link was lost is forgotten by the agent at the next one', async () => {
  const command = await newCommand(node, sandbox, ['echo', 'x'])
  await collect(attach(command.eventsUrl, command.token))
  machine()?.cutChannel()
  await eventually(() => machine()?.guest.processes.size).toBe(0)
})
