import { setTimeout as delay } from 'node:timers/promises'
import { runCommand } from '@space/testkit'
import { afterEach, describe, expect, test } from 'vitest'
import {
  type GuestLink,
  type GuestSession,
  memorySecrets,
  openGuestSession,
  type SessionEvent,
} from '../src/guest/index.ts'
import { fakeMachine } from './guest-machine.ts'

const opened: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close()
})

async function session(budgets: { handshakeTimeoutMs?: number } = {}) {
  const fake = await fakeMachine()
  const events: SessionEvent[] = []
  let connections = 0
  let open = 0
  let mostOpen = 0
  const session: GuestSession = openGuestSession({
    machine: {
      exited: fake.machine.exited,
      async guest(signal) {
        connections += 1
        const stream = await fake.machine.guest(signal)
        open += 1
        mostOpen = Math.max(mostOpen, open)
        stream.once('close', () => (open -= 1))
        return stream
      },
    },
    secrets: memorySecrets(),
    budgets,
    firstRetryMs: 10,
    lastRetryMs: 100,
    onEvent: (event) => events.push(event),
  })
  opened.push(session, fake)
  return { ...fake, session, events, connections: () => connections, mostOpen: () => mostOpen }
}

describe('a session', () => {
  test('gives who waits a live link, and the next one when it was cut', async () => {
    const { session: guest, vm, mostOpen } = await session()
    const links = new Set()
    for (let round = 0; round < 5; round += 1) {
      const link = await guest.link()
      expect(link.ended).toBeUndefined()
      links.add(link)
      vm.cutChannel()
      await link.closed
    }
    expect(links.size).toBe(5)
    expect(mostOpen()).toBe(1)
  })

  test('repeats what may be repeated on the next link, and nothing else', async () => {
    const { session: guest, vm } = await session()
    await guest.link()
    let runs = 0
    const askAfterCut = async (client: GuestLink['client']) => {
      runs += 1
      if (runs === 1) vm.cutChannel()
      return client.info({})
    }
    expect((await guest.withClient(askAfterCut, { repeat: true })).protocolVersion).toBe(1)
    expect(runs).toBe(2)
    runs = 0
    await expect(guest.withClient(askAfterCut)).rejects.toThrow()
    const own = () => Promise.reject(new TypeError('of its own'))
    await expect(guest.withClient(own, { repeat: true })).rejects.toThrow('of its own')
  })

  test('waits longer after each failure and not less often than its last wait', async () => {
    const { session: guest, vm, events, connections } = await session({ handshakeTimeoutMs: 20 })
    await guest.link()
    vm.setStalled(true)
    vm.cutChannel()
    await expect.poll(() => events.filter(({ kind }) => kind === 'attempt_failed').length).toBeGreaterThan(5)
    const waits = events.flatMap((event) => (event.kind === 'attempt_failed' ? [event.retryInMs] : []))
    expect(waits.slice(0, 5)).toEqual([20, 40, 80, 100, 100])
    const tried = connections()
    await delay(500)
    expect(connections() - tried).toBeLessThanOrEqual(5)
    vm.setStalled(false)
    const { exit } = await guest.withClient((client) => runCommand(client, 'prctrue', ['true']))
    expect(exit?.exitCode).toBe(0)
  })

  test('that closes fails who waits, ends its link and opens no other', async () => {
    const { session: guest, vm, connections } = await session({ handshakeTimeoutMs: 20 })
    const link = await guest.link()
    vm.setStalled(true)
    vm.cutChannel()
    await link.closed
    const waiting = guest.link()
    const failing = expect(waiting).rejects.toMatchObject({ kind: 'closed' })
    await guest.close()
    await failing
    const tried = connections()
    await delay(150)
    expect(connections()).toBe(tried)
    await expect(guest.link()).rejects.toMatchObject({ kind: 'closed' })
    await guest.close()
  })

  test('closes by itself when its machine ends', async () => {
    const { session: guest, vm } = await session()
    const link = await guest.link()
    vm.end({ reason: 'vmm_died', detail: 'by a test' })
    await link.closed
    await vm.exited
    await expect(guest.link()).rejects.toMatchObject({ kind: 'lost' })
    expect(guest.phase).toBe('closed')
  })

  test('stops waiting when its caller does', async () => {
    const { session: guest, vm } = await session()
    vm.setStalled(true)
    const abort = new AbortController()
    const waiting = guest.link(abort.signal)
    abort.abort()
    await expect(waiting).rejects.toMatchObject({ kind: 'aborted' })
  })
})
