import { type Stack, startStack } from '@space/testkit/stack'
import { afterEach, expect, test } from 'vitest'

let stack: Stack | undefined
afterEach(async () => {
  await stack?.close()
  stack = undefined
})

test('a command goes through the whole of SPACE and back, byte for byte', async () => {
  stack = await startStack()
  const { sandbox } = await stack.client.sandboxes.create({ template: 'base' }, { waitSeconds: 20 })
  const argv = ['sh', '-c', "printf 'a\\n\\nb\\r\\n\\0\\xff'; echo wrong >&2; exit 7"]
  const running = await stack.client.commands.run(sandbox.id, { argv })
  const stdout: Uint8Array[] = []
  let exitCode: number | null | undefined
  for await (const event of running) {
    if (event.type === 'stdout') stdout.push(event.data)
    if (event.type === 'process_exited') exitCode = event.exitCode
  }
  expect(Buffer.concat(stdout)).toEqual(Buffer.from('a\n\nb\r\n\0\xff', 'latin1'))
  expect(exitCode).toBe(7)
  await stack.client.sandboxes.delete(sandbox.id, { waitSeconds: 20 })
  expect(stack.host.machines.filter(({ folder }) => folder.includes(sandbox.id))).toEqual([])
})

test('a sandbox and its process outlive the servers, and the stream continues at its byte', async () => {
  stack = await startStack()
  const { sandbox } = await stack.client.sandboxes.create({ template: 'base' }, { waitSeconds: 20 })
  const running = await stack.client.commands.run(sandbox.id, {
    argv: ['sh', '-c', 'seq 1 9; sleep 1; seq 10 12'],
  })
  let text = ''
  for await (const event of running) {
    if (event.type !== 'stdout') continue
    text += Buffer.from(event.data).toString()
    if (text.endsWith('9\n')) stack = await stack.restart()
  }
  expect(text).toBe(Array.from({ length: 12 }, (_, index) => `${index + 1}\n`).join(''))
})
