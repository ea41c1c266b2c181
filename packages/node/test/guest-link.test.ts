import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { Code, ConnectError } from '@connectrpc/connect'
import { joinCommand, patternBytes, runCommand, startCommand } from '@space/testkit'
import { afterEach, describe, expect, test } from 'vitest'
import {
  attachRequests,
  bootSecrets,
  type GuestLinkOptions,
  type LinkSecretStore,
  type LinkSecrets,
  memorySecrets,
  openGuestLink,
} from '../src/guest/index.ts'
import { fakeMachine } from './guest-machine.ts'

const machines: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const machine of machines.splice(0)) await machine.close()
})

async function machine() {
  const fake = await fakeMachine()
  machines.push(fake)
  const open = (options: Partial<GuestLinkOptions> = {}) =>
    openGuestLink({ connect: (signal) => fake.machine.guest(signal), secrets: memorySecrets(), ...options })
  return { ...fake, open }
}

/** A store that remembers what was durable when. */
function recordedSecrets(initial: LinkSecrets = bootSecrets) {
  const written: LinkSecrets[] = []
  const inner = memorySecrets(initial)
  const store: LinkSecretStore = {
    read: inner.read,
    async write(secrets) {
      written.push(secrets)
      await inner.write(secrets)
    },
  }
  return { store, written, read: inner.read }
}

describe('the first link after a boot', () => {
  test('gives the agent a secret that was written down before it was told', async () => {
    const { open, vm } = await machine()
    const { store, written } = recordedSecrets()
    const link = await open({ secrets: store })
    const [proposed, settled] = written
    expect(proposed).toEqual({ current: bootSecrets.current, candidate: settled?.current })
    expect(settled?.current).toHaveLength(16)
    expect(settled?.candidate).toBeUndefined()
    expect(Buffer.from(vm.guest.save().prefix, 'base64')).toEqual(settled?.current)
    await link.close()
    await expect(open({ budgets: { handshakeTimeoutMs: 200 } })).rejects.toMatchObject({
      kind: 'handshake_timeout',
    })
    await (await open({ secrets: store })).close()
  })

  test('leaves an agent that can be reached when the node ends between writing, telling and settling', async () => {
    const { open, vm } = await machine()
    const unsettled = { current: bootSecrets.current, candidate: Buffer.alloc(16, 3) }
    // Not told yet: the agent has the old prefix, and is told the candidate it was meant to have.
    const before = recordedSecrets(unsettled)
    await (await open({ secrets: before.store })).close()
    expect(await before.read()).toEqual({ current: unsettled.candidate })
    // Told already: the agent has the candidate.
    const after = recordedSecrets({ current: Buffer.alloc(16, 1), candidate: unsettled.candidate })
    await (await open({ secrets: after.store })).close()
    const { current, candidate } = await after.read()
    expect(candidate).toBeUndefined()
    expect(Buffer.from(vm.guest.save().prefix, 'base64')).toEqual(current)
  })

  test('of a machine restored from a shared snapshot can change the secret at any time', async () => {
    const { open } = await machine()
    const secrets = memorySecrets()
    const link = await open({ secrets })
    const first = await secrets.read()
    await Promise.all([link.rotateSecret(), link.rotateSecret()])
    expect(await secrets.read()).not.toEqual(first)
    await link.close()
    await (await open({ secrets })).close()
  })
})

describe('a link', () => {
  test('is given up when its caller aborts, in the handshake and before', async () => {
    const { open, vm } = await machine()
    vm.setStalled(true)
    const abort = new AbortController()
    const opening = open({ signal: abort.signal })
    await delay(20)
    abort.abort()
    await expect(opening).rejects.toMatchObject({ kind: 'aborted' })
    await expect(open({ signal: AbortSignal.abort() })).rejects.toMatchObject({ kind: 'aborted' })
  })

  test('that breaks fails its calls, and no process of the node', async () => {
    const { open, vm } = await machine()
    const link = await open()
    const running = runCommand(link.client, 'prcyes', ['yes'])
    const waiting = runCommand(link.client, 'prccat', ['cat'], { stdin: 'x' })
    await waiting
    vm.cutChannel()
    await expect(running).rejects.toBeInstanceOf(ConnectError)
    expect(await link.closed).toMatchObject({ kind: 'lost' })
    await expect(link.client.info({})).rejects.toMatchObject({ code: Code.Unavailable })
    expect(await link.close()).toMatchObject({ kind: 'lost' })
  })

  test('closed by the node ends as closed, and again does nothing', async () => {
    const { open } = await machine()
    const link = await open()
    expect(await link.close()).toMatchObject({ kind: 'closed' })
    expect(await link.close()).toMatchObject({ kind: 'closed' })
    expect(link.ended).toMatchObject({ kind: 'closed' })
  })

  test('passes on a program that prints the frames of the handshake', async () => {
    const { open } = await machine()
    const link = await open()
    const forged = 'SPACE-GUEST-v1\r\nH0123456789abcdef'
    const { stdout } = await runCommand(link.client, 'prccat', ['cat'], { stdin: forged })
    expect(stdout.toString()).toBe(forged)
    expect(link.ended).toBeUndefined()
  })
})

describe('a stream of output', () => {
  test('arrives whole and in order while the link is cut again and again', async () => {
    const { open, vm } = await machine()
    const secrets = memorySecrets()
    const total = 3 * 1024 * 1024
    let received = Buffer.alloc(0)
    await startCommand((await open({ secrets })).client, 'prcprint', ['print', String(total), '10000'])
    let cuts = 0
    for (let done = false; !done; ) {
      const link = await open({ secrets })
      const requests = attachRequests({
        case: 'join',
        value: { processId: 'prcprint', fromOffset: BigInt(received.length) },
      })
      const cutAt = received.length + 300_000
      try {
        for await (const { kind } of link.client.attach(requests)) {
          if (kind.case === 'output') {
            expect(kind.value.offset).toBe(BigInt(received.length))
            received = Buffer.concat([received, kind.value.data])
            requests.ack(BigInt(received.length))
            if (received.length >= cutAt) vm.cutChannel()
          }
          if (kind.case === 'exited') done = kind.value.finalOffset === BigInt(received.length)
        }
      } catch (error) {
        expect(error).toBeInstanceOf(ConnectError)
        cuts += 1
      }
      requests.end()
      await link.close()
    }
    expect(cuts).toBeGreaterThan(1)
    expect(received.equals(patternBytes(0, total))).toBe(true)
  })

  test('that nobody reads stops at its window and holds up no other', async () => {
    const { open, machine: fake, vm } = await machine()
    let socket: Duplex | undefined
    const connect = async () => {
      socket = await fake.guest()
      return socket
    }
    const link = await open({ connect, budgets: { streamWindowBytes: 65_536 } })
    await startCommand(link.client, 'prcyes', ['yes'])
    const join = attachRequests({ case: 'join', value: { processId: 'prcyes', fromOffset: 0n } })
    await link.client.attach(join)[Symbol.asyncIterator]().next()
    await expect.poll(() => vm.guest.processes.get('prcyes')?.output.nextOffset).toBeGreaterThan(900_000)
    await delay(50)
    expect((socket instanceof Socket && socket.bytesRead) || 0).toBeGreaterThan(65_536)
    expect((socket instanceof Socket && socket.bytesRead) || 0).toBeLessThan(500_000)
    const other = await runCommand(link.client, 'prcother', ['seq', '1', '100000'])
    expect(other.exit?.finalOffset).toBe(588_895n)
    join.end()
    await link.close()
  })
})

describe('the requests of a call', () => {
  test('fold acknowledgements that were not sent yet, and keep stdin in order', async () => {
    const requests = attachRequests({ case: 'join', value: { processId: 'prcx', fromOffset: 0n } })
    for (const offset of [5n, 20n, 10n]) requests.ack(offset)
    const sent = [requests.stdin(0n, Buffer.from('ab')), requests.stdinClose(2n)]
    const seen: string[] = []
    for await (const { kind } of requests) {
      seen.push(kind.case === 'ack' ? `ack ${kind.value.offset}` : `${kind.case}`)
      if (kind.case === 'ack') requests.end()
    }
    expect(seen).toEqual(['join', 'stdin', 'stdinClose', 'ack 20'])
    expect(await Promise.all(sent)).toEqual([true, true])
    expect(await requests.stdin(2n, Buffer.from('c'))).toBe(false)
  })

  test('join at an offset continues at that byte', async () => {
    const { open } = await machine()
    const link = await open()
    await startCommand(link.client, 'prcseq', ['seq', '1', '1000'])
    const rest = await joinCommand(link.client, 'prcseq', 3_000n)
    expect(rest.firstOffset).toBe(3_000n)
    expect(rest.exit?.finalOffset).toBe(3_893n)
    expect(rest.output).toHaveLength(893)
    await link.close()
  })
})
