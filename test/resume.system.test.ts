import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bytesOf, collect, type Session } from './client.ts'
import { Server, tier } from './server.ts'

let server: Server
let sandbox: string

beforeAll(async () => {
  server = await Server.start({ env: { SPACE_JOURNAL_BYTES: String(2 ** 31) } })
  sandbox = await server.client.create()
})
afterAll(async () => {
  await server?.close()
})

/** Reads a session to its end, cutting the connection again and again, resuming each time by `Last-Event-ID`. */
async function readInPieces(session: Session, cutAfterMs: number): Promise<{ bytes: Buffer; cuts: number }> {
  const pieces: Buffer[] = []
  let lastEventId: string | undefined
  let cuts = 0
  for (;;) {
    const signal = AbortSignal.timeout(cutAfterMs)
    try {
      const options = { signal, ...(lastEventId === undefined ? {} : { lastEventId }) }
      for await (const event of server.client.events(session, options)) {
        lastEventId = event.id
        if (event.name === 'resync_required') throw new Error(`resync_required ${JSON.stringify(event.data)}`)
        if (event.name === 'stdout') pieces.push(bytesOf(event.data))
        if (event.name === 'process_exited') return { bytes: Buffer.concat(pieces), cuts }
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
    cuts += 1
  }
}

test('B1: a stream cut every 100 ms and resumed each time joins to the bytes of an uncut one', async () => {
  const seconds = tier(4, 60)
  const script = `end=$(($(date +%s) + ${seconds})); i=0
while [ $(date +%s) -lt $end ]; do seq $i $((i + 200)); i=$((i + 201)); sleep 0.02; done`
  const { process, session } = await server.client.command(sandbox, ['sh', '-c', script])
  const second = await server.client.call(
    'POST',
    `/v1/sandboxes/${sandbox}/processes/${process.id}/sessions`,
    {},
  )
  const [cut, whole] = await Promise.all([
    readInPieces(session, 100),
    collect(server.client.events(second.session ?? second)),
  ])
  expect(cut.cuts).toBeGreaterThan(seconds * 3)
  expect(whole.stdout.length).toBeGreaterThan(1000)
  expect(cut.bytes.equals(whole.stdout)).toBe(true)
})

test(
  'B3: a reader that stops changes nothing for another one, and memory stays flat',
  async () => {
    // The first megabytes compile code and fill pools, once.
    await server.client.run(sandbox, ['head', '-c', '64M', '/dev/zero'])
    const mebibytes = tier(64, 1024)
    const argv = ['head', '-c', `${mebibytes}M`, '/dev/zero']
    const { process, session } = await server.client.command(sandbox, argv)
    const second = await server.client.call(
      'POST',
      `/v1/sandboxes/${sandbox}/processes/${process.id}/sessions`,
      {},
    )
    const stalled = await fetch(session.events_url, { headers: { authorization: `Bearer ${session.token}` } })
    const before = server.residentMib()
    let peak = before
    let bytes = 0
    for await (const event of server.client.events(second.session ?? second)) {
      if (event.name !== 'stdout') continue
      const data = bytesOf(event.data)
      expect(event.data['offset']).toBe(bytes)
      bytes += data.length
      peak = Math.max(peak, server.residentMib())
    }
    expect(bytes).toBe(mebibytes * 2 ** 20)
    // Garbage that is not yet collected counts as resident: what stays is the promise, the peak only catches a leak.
    expect(peak - before).toBeLessThan(160)
    await sleep(tier(1_000, 60_000))
    const grown = server.residentMib() - before
    console.log(`the server grew by ${grown.toFixed(0)} MiB, at most ${(peak - before).toFixed(0)} MiB`)
    expect(grown).toBeLessThan(tier(160, 32))
    await stalled.body?.cancel()
  },
  tier(300_000, 1_800_000),
)

test('a stream that ended is answered with 204, so that an EventSource stops', async () => {
  const { session } = await server.client.command(sandbox, ['true'])
  let last = ''
  for await (const event of server.client.events(session)) last = event.id
  const again = await fetch(session.events_url, {
    headers: { authorization: `Bearer ${session.token}`, 'last-event-id': last },
  })
  expect(again.status).toBe(204)
})

test('from_offset begins at exactly that byte, also in the middle of what was printed at once', async () => {
  const { session } = await server.client.command(sandbox, ['printf', '0123456789'])
  await collect(server.client.events(session))
  const at7 = { ...session, events_url: `${session.events_url}?from_offset=7` }
  const pieces: string[] = []
  for await (const event of server.client.events(at7))
    if (event.name === 'stdout') pieces.push(bytesOf(event.data).toString())
  expect(pieces.join('')).toBe('789')
})
