import { afterAll, beforeAll, expect, test } from 'vitest'
import { bytesOf, type Session } from './client.ts'
import { Server } from './server.ts'
import { vmmsOf } from './traces.ts'

let server: Server

beforeAll(async () => {
  server = await Server.start()
})
afterAll(async () => {
  await server?.close()
})

/** Follows a session, resuming where it was, until `until` is printed or it ends. */
async function follow(
  session: Session,
  state: { text: string; lastEventId?: string },
  until: string,
): Promise<void> {
  const options = state.lastEventId === undefined ? {} : { lastEventId: state.lastEventId }
  for await (const event of server.client.events(session, options)) {
    state.lastEventId = event.id
    if (event.name === 'stdout') state.text += bytesOf(event.data).toString()
    if (state.text.includes(until)) return
  }
}

test.each(['kill -9', 'Ctrl-C'])(
  'A1, B1: after %s of the server the sandbox is adopted, its process runs on, the stream continues at the byte',
  async (how) => {
    const sandbox = await server.client.create()
    const vmms = vmmsOf(server.home)
    const script = 'i=0; while [ $i -lt 400 ]; do echo "line $i"; i=$((i + 1)); sleep 0.05; done; exit 5'
    const { process, session } = await server.client.command(sandbox, ['sh', '-c', script])
    const state = { text: '' }
    await follow(session, state, 'line 20\n')
    if (how === 'kill -9') await server.kill9()
    else await server.interrupt()
    await server.boot()
    expect((await server.client.call('GET', `/v1/sandboxes/${sandbox}`)).state).toBe('running')
    await follow(session, state, 'never printed: to the end')
    expect(state.text).toBe(Array.from({ length: 400 }, (_, index) => `line ${index}\n`).join(''))
    const answer = await server.client.call('GET', `/v1/sandboxes/${sandbox}/processes/${process.id}`)
    expect(answer).toMatchObject({ state: 'exited', exit_code: 5 })
    expect(vmms.length).toBeGreaterThan(0)
    await server.client.delete(sandbox)
  },
)

test('A1: a create that was acknowledged is finished by the next server', async () => {
  const { sandbox } = await server.client.call('POST', '/v1/sandboxes', { template: 'base' })
  await server.kill9()
  await server.boot()
  const deadline = Date.now() + 120_000
  let state = ''
  while (state !== 'running' && Date.now() < deadline) {
    state = (await server.client.call('GET', `/v1/sandboxes/${sandbox.id}`)).state
    expect(['creating', 'running']).toContain(state)
  }
  expect(await server.client.sh(sandbox.id, 'echo yes')).toBe('yes\n')
  await server.client.delete(sandbox.id)
})

test('a sandbox whose VMM dies is failed with the reason, and can be deleted', async () => {
  const before = new Set(vmmsOf(server.home))
  const sandbox = await server.client.create()
  const { session } = await server.client.command(
    sandbox,
    ['sh', '-c', 'echo begun; poweroff -f || echo o > /proc/sysrq-trigger; sleep 99'],
    {
      user: 'root',
    },
  )
  let exit: unknown
  for await (const event of server.client.events(session))
    if (event.name === 'process_exited') exit = event.data
  expect(exit).toMatchObject({ reason: 'lost' })
  const deadline = Date.now() + 60_000
  let answer = await server.client.call('GET', `/v1/sandboxes/${sandbox}`)
  while (answer.state === 'running' && Date.now() < deadline)
    answer = await server.client.call('GET', `/v1/sandboxes/${sandbox}`)
  expect(answer.state).toBe('failed')
  expect(answer.last_error.message.length).toBeGreaterThan(10)
  await server.client.delete(sandbox)
  expect(before.size).toBeGreaterThanOrEqual(0)
})
