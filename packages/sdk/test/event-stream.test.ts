import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { type EventStreamOptions, sessionEvents } from '../src/event-stream.ts'
import type { CommandEvent } from '../src/stream-cursor.ts'
import { Transport } from '../src/transport.ts'
import { type StreamServer, streamServer } from './stream-server.ts'

const transport = new Transport({ token: 'unused', fetch, maxAttempts: 1, attemptTimeoutMs: 5_000 })
const output = randomBytes(50_000)

function follow(server: StreamServer, options: EventStreamOptions = {}) {
  return sessionEvents(transport, server.session, options)
}

async function gather(events: AsyncIterable<CommandEvent>) {
  const all: CommandEvent[] = []
  for await (const event of events) all.push(event)
  const chunks = all.flatMap((event) => ('data' in event ? [event] : []))
  return {
    all,
    joined: Buffer.concat(chunks.map((chunk) => chunk.data)),
    offsets: chunks.map((chunk) => chunk.offset),
  }
}

test('a stream cut anywhere is joined to the same bytes, each once, and one exit', async () => {
  await using server = await streamServer(output, 1_000)
  // Cuts fall at another place of an event each time; every connection but the first few gets one event further at least.
  server.misbehave = (connection) => ({ cutAfterBytes: 1_300 + connection * 37 })
  const { all, joined } = await gather(follow(server))
  expect(joined.equals(output)).toBe(true)
  expect(all.filter((event) => event.type === 'process_started')).toHaveLength(1)
  expect(all.at(-1)).toEqual({
    type: 'process_exited',
    exitCode: 7,
    signal: null,
    timedOut: false,
    reason: 'exited',
  })
  expect(server.connections.length).toBeGreaterThan(10)
})

test('bytes sent again by the server are not handed on again', async () => {
  await using server = await streamServer(output, 1_000)
  server.misbehave = (connection) => ({ cutAfterBytes: 20_000, overlap: connection === 1 ? 0 : 1_500 })
  const { joined, offsets } = await gather(follow(server))
  expect(joined.equals(output)).toBe(true)
  expect(new Set(offsets).size).toBe(offsets.length)
})

test('a byte that is missing without a resync is an error, not silence', async () => {
  await using server = await streamServer(output, 1_000)
  server.misbehave = () => ({ skew: 1 })
  await expect(gather(follow(server))).rejects.toMatchObject({ code: 'protocol_error' })
  expect(server.connections).toHaveLength(1)
})

test('a connection that falls silent is replaced', async () => {
  await using server = await streamServer(output, 1_000)
  server.misbehave = (connection) => (connection === 1 ? { stallAfterEvents: 10 } : {})
  const { joined } = await gather(follow(server, { maxSilenceMs: 100 }))
  expect(joined.equals(output)).toBe(true)
  expect(server.connections).toHaveLength(2)
})

test('a caller that takes its time is not mistaken for a silent server', async () => {
  await using server = await streamServer(output, 1_000)
  let events = 0
  for await (const _ of follow(server, { maxSilenceMs: 50 }))
    if (++events === 3) await new Promise((resolve) => setTimeout(resolve, 200))
  expect(server.connections).toHaveLength(1)
})

test('a passing refusal is tried again, and told', async () => {
  await using server = await streamServer(output, 1_000)
  server.misbehave = (connection) => (connection < 3 ? { status: 503 } : {})
  const losses: number[] = []
  const { joined } = await gather(follow(server, { onLost: (loss) => losses.push(loss.attempt) }))
  expect(joined.equals(output)).toBe(true)
  expect(losses).toEqual([1, 2])
})

test('a final refusal is thrown at once with its code and request id', async () => {
  await using server = await streamServer(output, 1_000)
  const envelope = {
    code: 'not_found',
    message: 'no such session',
    request_id: 'req-1',
    details: {},
    retryable: false,
  }
  server.misbehave = () => ({ status: 404, envelope })
  await expect(gather(follow(server))).rejects.toMatchObject({
    code: 'not_found',
    status: 404,
    requestId: 'req-1',
  })
  expect(server.connections).toHaveLength(1)
})

test('trying again ends after the outage allowed, saying where to continue', async () => {
  await using server = await streamServer(output, 1_000)
  server.misbehave = (connection) => (connection === 1 ? { cutAfterBytes: 10_000 } : { status: 503 })
  const failure = gather(follow(server, { maxOutageMs: 300 }))
  await expect(failure).rejects.toMatchObject({ code: 'stream_lost', details: { last_event_id: '0.7000.0' } })
})

test('an abort ends a wait at once, with the reason given', async () => {
  await using server = await streamServer(output, 1_000)
  server.misbehave = () => ({ stallAfterEvents: 5 })
  const reason = new Error('enough')
  const abort = new AbortController()
  setTimeout(() => abort.abort(reason), 50)
  await expect(gather(follow(server, { signal: abort.signal }))).rejects.toBe(reason)
})

test('a stream whose exit was already delivered ends without another connection', async () => {
  await using server = await streamServer(output, 1_000)
  const { all } = await gather(follow(server, { lastEventId: '0.50000.exit' }))
  expect(all).toEqual([])
  expect(server.connections).toHaveLength(1)
})
