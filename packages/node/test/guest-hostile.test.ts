import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Code, ConnectError } from '@connectrpc/connect'
import { afterEach, describe, expect, test } from 'vitest'
import { ChannelStream } from '../src/guest/channel-stream.ts'
import { agreeOnSession } from '../src/guest/exchange.ts'
import {
  attachRequests,
  defaultLinkBudgets,
  type GuestLink,
  type LinkBudgets,
  memorySecrets,
  openGuestLink,
} from '../src/guest/index.ts'
import { frame, frameTypes, responseFrames, settings, windowUpdate } from './guest-frames.ts'
import {
  goodEcho,
  type HostileGuest,
  type HostileScript,
  hostileGuest,
  hostilePrefix,
} from './guest-hostile.ts'

const peers: HostileGuest[] = []
afterEach(async () => {
  for (const peer of peers.splice(0)) await peer.close()
})

async function linkTo(script: HostileScript, budgets: Partial<LinkBudgets> = {}): Promise<GuestLink> {
  const peer = await hostileGuest(script)
  peers.push(peer)
  return openGuestLink({ connect: peer.connect, secrets: memorySecrets({ current: hostilePrefix }), budgets })
}

/** Writes the same bytes for as long as the socket is there; says how much it could. */
function flood(socket: Socket, bytes: Buffer, perWrite: number): void {
  const many = Buffer.concat(Array.from({ length: perWrite }, () => bytes))
  const more = () => {
    while (!socket.destroyed && socket.write(many));
    if (!socket.destroyed) socket.once('drain', more)
  }
  more()
}

describe('a guest that breaks a rule in its session is cut off, with the rule named', () => {
  const cases: readonly (readonly [string, string, (socket: Socket) => void])[] = [
    ['a flood of WINDOW_UPDATE', 'control_flood', (socket) => flood(socket, windowUpdate, 1_000)],
    [
      'a flood of PING',
      'control_flood',
      (socket) => flood(socket, frame(frameTypes.ping, Buffer.alloc(8), 1), 1_000),
    ],
    [
      'a flood of unknown frames',
      'control_flood',
      (socket) => flood(socket, frame(0xfe, Buffer.alloc(0)), 1_000),
    ],
    [
      'a frame of 1 MiB',
      'frame_too_large',
      (socket) => socket.write(frame(frameTypes.data, Buffer.alloc(1 << 20))),
    ],
    [
      'headers of 32 KiB',
      'headers_too_large',
      (socket) => socket.write(frame(frameTypes.headers, Buffer.alloc(32_768), 0, 1)),
    ],
    ['a push', 'server_push', (socket) => socket.write(frame(frameTypes.pushPromise, Buffer.alloc(8), 4, 1))],
    ['bytes that are no HTTP/2', 'frame_too_large', (socket) => socket.write(Buffer.alloc(4_096, 0x7a))],
    [
      'data of a call nobody made',
      'protocol_error',
      (socket) => socket.write(frame(frameTypes.data, Buffer.alloc(10), 0, 77)),
    ],
    [
      'a GOAWAY',
      'lost',
      (socket) => socket.write(frame(frameTypes.goaway, Buffer.from([0, 0, 0, 0, 0, 0, 0, 11]))),
    ],
    ['the end of the stream', 'lost', (socket) => socket.end()],
    ['a stream that breaks', 'lost', (socket) => socket.destroy()],
  ]

  test.each(cases)('%s: %s', async (_name, kind, attack) => {
    const link = await linkTo({
      session(socket) {
        socket.write(settings)
        attack(socket)
      },
    })
    expect(await link.closed).toMatchObject({ kind })
    await expect(link.client.info({})).rejects.toMatchObject({ code: Code.Unavailable })
  })
})

test('a guest that answers no ping is cut off', async () => {
  const budgets = { pingIntervalMs: 20, pingTimeoutMs: 100 }
  const link = await linkTo({ session: (socket) => socket.write(settings) }, budgets)
  expect((await link.closed).kind).toBe('silent')
})

test('a call the guest never answers ends by itself, and the link stays', async () => {
  const link = await linkTo({ session: (socket) => socket.write(settings) }, { unaryTimeoutMs: 50 })
  const error = await link.client.info({}).catch((reason: unknown) => reason)
  expect(ConnectError.from(error).code).toBe(Code.DeadlineExceeded)
  expect(link.ended).toBeUndefined()
  await link.close()
})

test('a response whose stream is closed behind its last byte, with the request still open, is read to its end', async () => {
  let peer: Socket | undefined
  const link = await linkTo({
    session(socket) {
      peer = socket
      socket.write(settings)
    },
  })
  const requests = attachRequests({ case: 'join', value: { processId: 'prcx', fromOffset: 0n } })
  const calling = Array.fromAsync(link.client.attach(requests))
  const bytes = Buffer.alloc(100_000, 7)
  await delay(50)
  peer?.write(
    Buffer.concat([...responseFrames(1, bytes), frame(frameTypes.rstStream, Buffer.alloc(4), 0, 1)]),
  )
  const output = (await calling).flatMap(({ kind }) => (kind.case === 'output' ? [kind.value.data] : []))
  expect(Buffer.concat(output).equals(bytes)).toBe(true)
  requests.end()
  await link.close()
})

describe('the byte budget', () => {
  const rates = { burstBytes: 1 << 20, minFrameCostBytes: 4_096 }
  const mib = 1 << 20
  const cases: readonly (readonly [string, Buffer, number, number])[] = [
    ['bytes', frame(frameTypes.data, Buffer.alloc(65_527)), 40, 10 * mib],
    [
      'small frames, by what they take to handle,',
      frame(frameTypes.data, Buffer.alloc(1)),
      13_107,
      256 * mib,
    ],
  ]

  test.each(cases)(
    'slows the reading of %s down to its rate, and loses none',
    async (_name, one, times, maxBytesPerSecond) => {
      const budgets = { ...defaultLinkBudgets, ...rates, maxBytesPerSecond }
      const all = Buffer.concat(Array.from({ length: times }, () => one))
      const peer = await hostileGuest({ session: (socket) => socket.write(all) })
      peers.push(peer)
      const socket = await peer.connect()
      const agreed = await agreeOnSession(socket, [hostilePrefix], budgets)
      const startedAtMs = performance.now()
      const channel = new ChannelStream(socket, agreed.skipper, budgets)
      channel.begin(agreed.rest)
      let readBytes = 0
      for await (const chunk of channel) {
        readBytes += Buffer.from(chunk).length
        if (readBytes === all.length) break
      }
      // The burst is free and the last piece is not waited for: between them lie at least 100 ms of either.
      expect(performance.now() - startedAtMs).toBeGreaterThan(80)
      expect(readBytes).toBe(all.length)
    },
  )
})

describe('an agent that breaks a rule in the handshake gets no link', () => {
  const oversize = (nonce: Buffer) => {
    const bytes = goodEcho(nonce)
    bytes.writeUInt32BE(0x0010_0001, 33)
    return bytes
  }
  const unreadable = (nonce: Buffer) =>
    Buffer.concat([goodEcho(nonce).subarray(0, 33), Buffer.from([0, 0, 0, 3, 0xff, 0xff, 0xff])])
  const wrongVersion = (nonce: Buffer) => Buffer.concat([goodEcho(nonce).subarray(0, 33), Buffer.alloc(4)])
  const cases: readonly (readonly [string, string, (nonce: Buffer) => Buffer])[] = [
    ['an ECHO above 1 MiB', 'echo_too_large', oversize],
    ['an ECHO that is no InfoResponse', 'echo_invalid', unreadable],
    ['an ECHO without a protocol version', 'echo_invalid', wrongVersion],
    ['an ECHO of another nonce', 'handshake_timeout', () => goodEcho(Buffer.alloc(16))],
    ['garbage without end', 'garbage', () => Buffer.alloc(300_000)],
  ]

  test.each(cases)('%s: %s', async (_name, kind, echo) => {
    const opening = linkTo({ echo }, { handshakeTimeoutMs: 300, maxDiscardedBytes: 200_000 })
    await expect(opening).rejects.toMatchObject({ kind })
  })

  test('a peer that is gone: connect_failed', async () => {
    const peer = await hostileGuest({})
    await peer.close()
    const opening = openGuestLink({ connect: peer.connect, secrets: memorySecrets() })
    await expect(opening).rejects.toMatchObject({ kind: 'connect_failed' })
  })
})
