import { randomBytes } from 'node:crypto'
import { appendFile, mkdtemp, readdir, rm, stat, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  JournalError,
  type JournalItem,
  type JournalLimits,
  JournalWriter,
  journalLimits,
  openJournal,
  type Position,
  parsePosition,
  readJournal,
} from '../src/journal/index.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'space-journal-'))
})
afterEach(async () => {
  await rm(folder, { recursive: true, force: true })
})

const start: Position = { epoch: 1, offset: 0, n: 0 }
const exit = { exit_code: 0, signal: null, timed_out: false, reason: 'exited' } as const
const small: JournalLimits = { ...journalLimits, segmentBytes: 4096, keepBytes: 16_384 }

async function newWriter(limits: JournalLimits = journalLimits): Promise<JournalWriter> {
  return new JournalWriter(await openJournal(join(folder, 'j')), { limits })
}

type Copied = { readonly kind: JournalItem['kind']; readonly id: string; readonly text: string }

async function collect(
  items: AsyncIterable<JournalItem>,
): Promise<{ bytes: Buffer; items: Copied[]; lost: number }> {
  const chunks: Buffer[] = []
  const copied: Copied[] = []
  let lost = 0
  for await (const item of items) {
    const text =
      item.kind === 'output' ? item.stream : item.kind === 'event' ? item.event.event : `${item.lostBytes}`
    copied.push({ kind: item.kind, id: `${item.position.offset}.${item.position.n}`, text })
    if (item.kind === 'output') chunks.push(Buffer.from(item.data))
    if (item.kind === 'gap') lost += item.lostBytes
  }
  return { bytes: Buffer.concat(chunks), items: copied, lost }
}

describe('writing', () => {
  test('events count at their offset and process_exited is the last item', async () => {
    const writer = await newWriter()
    writer.event({ event: 'process_started', data: { process_id: 'prc1', pid: 4, started_at: 'then' } })
    writer.append('stdout', 0, Buffer.from('out'))
    writer.append('stderr', 3, Buffer.from('err'))
    writer.event({ event: 'process_exited', data: exit })
    await writer.close()
    const read = await collect(readJournal(writer.journal, start))
    expect(read.items).toEqual([
      { kind: 'event', id: '0.1', text: 'process_started' },
      { kind: 'output', id: '3.0', text: 'stdout' },
      { kind: 'output', id: '6.0', text: 'stderr' },
      { kind: 'event', id: '6.1', text: 'process_exited' },
    ])
    expect(() => writer.append('stdout', 6, Buffer.from('x'))).toThrow(JournalError)
  })

  test('bytes sent again are skipped, a gap is refused', async () => {
    const writer = await newWriter()
    writer.append('stdout', 0, Buffer.from('hello'))
    writer.append('stdout', 2, Buffer.from('llo wor'))
    writer.append('stdout', 0, Buffer.from('hel'))
    expect(() => writer.append('stdout', 10, Buffer.from('d'))).toThrow(/expected 9/)
    writer.event({ event: 'process_exited', data: exit })
    await writer.close()
    expect((await collect(readJournal(writer.journal, start))).bytes.toString()).toBe('hello wor')
  })

  test('an acknowledgement follows the write: what it names can be read', async () => {
    const acknowledged: number[] = []
    const journal = await openJournal(join(folder, 'j'))
    const writer = new JournalWriter(journal, {
      onWritten: (next) => {
        acknowledged.push(next)
        expect(journal.written.offset).toBe(next)
      },
    })
    writer.append('stdout', 0, Buffer.alloc(300_000, 1))
    await writer.flush()
    expect(acknowledged.at(-1)).toBe(300_000)
    await writer.close()
  })

  test('room is refused above the bound and given back by the disk', async () => {
    const writer = await newWriter({ ...journalLimits, maxPendingBytes: 1000 })
    let roomy = false
    writer.append('stdout', 0, Buffer.alloc(1001))
    const room = writer.room().then(() => {
      roomy = true
    })
    await Promise.resolve()
    expect(roomy).toBe(false)
    await room
    await writer.close()
    expect(writer.journal.written.offset).toBe(1001)
  })

  test('a disk that refuses is tried again and loses nothing', async () => {
    const errors: unknown[] = []
    const journal = await openJournal(join(folder, 'j'))
    const { rename, mkdir } = await import('node:fs/promises')
    await rename(journal.folder, `${journal.folder}.away`)
    const writer = new JournalWriter(journal, {
      limits: { ...journalLimits, retryMs: 5 },
      onWriteError: (error) => errors.push(error),
    })
    writer.append('stdout', 0, Buffer.from('kept'))
    await expect.poll(() => errors.length).toBeGreaterThan(0)
    await mkdir(journal.folder)
    await writer.flush()
    writer.event({ event: 'process_exited', data: exit })
    await writer.close()
    expect((await collect(readJournal(journal, start))).bytes.toString()).toBe('kept')
  })
})

describe('opening again', () => {
  test('continues at the exact byte after a crash', async () => {
    const before = await newWriter()
    before.append('stdout', 0, Buffer.from('one '))
    await before.flush()
    const after = await newWriter()
    expect(after.nextOffset).toBe(4)
    expect(after.begun).toBe(true)
    after.append('stdout', 0, Buffer.from('one two'))
    after.event({ event: 'process_exited', data: exit })
    await after.close()
    expect((await collect(readJournal(after.journal, start))).bytes.toString()).toBe('one two')
    const third = await openJournal(join(folder, 'j'))
    expect(third.endedAt).toEqual({ epoch: 1, offset: 7, n: 1 })
    await before.close()
  })

  test('cuts a torn tail at every byte to the last whole record', async () => {
    const writer = await newWriter()
    writer.append('stdout', 0, Buffer.from('whole'))
    await writer.flush()
    const whole = writer.journal.segments[0]?.bytes ?? 0
    writer.append('stderr', 5, Buffer.from('torn!'))
    await writer.close()
    const file = join(folder, 'j', (await readdir(join(folder, 'j')))[0] ?? '')
    const full = (await stat(file)).size
    for (let size = full - 1; size >= whole; size -= 1) {
      await truncate(file, size)
      expect((await openJournal(join(folder, 'j'))).written.offset).toBe(5)
      expect((await stat(file)).size).toBe(whole)
      await appendFile(file, randomBytes(full - whole))
    }
  })
})

describe('reading', () => {
  test('any position of any journal resumes at exactly the next byte, across segments and restarts', async () => {
    const chunk = fc.record({
      stream: fc.constantFrom('stdout', 'stderr', 'pty'),
      size: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 9000 })),
      next: fc.constantFrom('more', 'flush', 'reopen'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(chunk, { maxLength: 12 }), fc.nat(), async (chunks, cut) => {
        const own = await mkdtemp(join(folder, 'p-'))
        const limits = { ...journalLimits, segmentBytes: 4096 }
        let writer = new JournalWriter(await openJournal(own), { limits })
        const sent: Buffer[] = []
        for (const { stream, size, next } of chunks) {
          const data = randomBytes(size)
          writer.append(stream, writer.nextOffset, data)
          sent.push(data)
          if (next === 'flush') await writer.flush()
          if (next === 'reopen') {
            await writer.close()
            writer = new JournalWriter(await openJournal(own), { limits })
          }
        }
        writer.event({ event: 'process_exited', data: exit })
        await writer.close()
        const all = Buffer.concat(sent)
        const from = cut % (all.length + 1)
        const journal = await openJournal(own)
        const read = await collect(readJournal(journal, { epoch: 1, offset: from, n: 0 }))
        expect(read.bytes.equals(all.subarray(from))).toBe(true)
        expect(read.items.at(-1)?.text).toBe('process_exited')
      }),
      { numRuns: 40 },
    )
  })

  test('a reader follows what is written later and ends with the exit', async () => {
    const writer = await newWriter(small)
    const reading = collect(readJournal(writer.journal, start))
    const sent: Buffer[] = []
    for (let i = 0; i < 50; i += 1) {
      const data = randomBytes(100)
      sent.push(data)
      writer.append('stdout', i * 100, data)
      if (i % 7 === 0) await writer.flush()
    }
    writer.event({ event: 'process_exited', data: exit })
    expect((await reading).bytes.equals(Buffer.concat(sent))).toBe(true)
    await writer.close()
  })

  test('bytes the limit dropped are counted, the rest follows without a hole', async () => {
    const writer = await newWriter(small)
    const sent: Buffer[] = []
    for (let i = 0; i < 100; i += 1) {
      sent.push(randomBytes(1000))
      writer.append('stdout', i * 1000, sent[i] ?? Buffer.alloc(0))
      await writer.flush()
    }
    writer.event({ event: 'process_exited', data: exit })
    await writer.close()
    const first = writer.journal.firstOffset
    expect(first).toBeGreaterThan(70_000)
    expect(100_000 - first).toBeGreaterThanOrEqual(small.keepBytes - 1000)
    const read = await collect(readJournal(writer.journal, { epoch: 1, offset: 5, n: 0 }))
    expect(read.lost).toBe(first - 5)
    expect(read.bytes.equals(Buffer.concat(sent).subarray(first))).toBe(true)
    expect((await readdir(join(folder, 'j'))).length).toBe(writer.journal.segments.length)
  })

  test('a reader that stalls keeps its segment, then learns what went', async () => {
    const writer = await newWriter(small)
    writer.append('stdout', 0, Buffer.alloc(1000, 'a'))
    await writer.flush()
    const stalled = readJournal(writer.journal, start)[Symbol.asyncIterator]()
    const head = await stalled.next()
    expect(head.value?.kind).toBe('output')
    for (let i = 1; i < 60; i += 1) {
      writer.append('stdout', i * 1000, Buffer.alloc(1000, 'b'))
      await writer.flush()
    }
    writer.event({ event: 'process_exited', data: exit })
    await writer.close()
    const rest = await collect({ [Symbol.asyncIterator]: () => stalled })
    expect(1000 + rest.bytes.length + rest.lost).toBe(60_000)
    expect(rest.lost).toBeGreaterThan(0)
  })

  test('another epoch is told, then the whole of this one follows', async () => {
    const writer = await newWriter()
    writer.append('stdout', 0, Buffer.from('abc'))
    writer.event({ event: 'process_exited', data: exit })
    await writer.close()
    const read = await collect(readJournal(writer.journal, { epoch: 2, offset: 2, n: 0 }))
    expect(read.items[0]).toEqual({ kind: 'gap', id: '0.0', text: '0' })
    expect(read.bytes.toString()).toBe('abc')
  })

  test('waiting readers let go at once when their signal or the journal ends', async () => {
    const writer = await newWriter()
    const abort = new AbortController()
    const aborted = collect(readJournal(writer.journal, start, { signal: abort.signal }))
    const closed = collect(readJournal(writer.journal, start))
    abort.abort(new Error('gone'))
    await expect(aborted).rejects.toThrow('gone')
    writer.journal.close()
    expect((await closed).items).toEqual([])
    await writer.close()
  })
})

test('an id that is none of ours is refused', () => {
  expect(parsePosition('1.12.3')).toEqual({ epoch: 1, offset: 12, n: 3 })
  for (const id of [
    '',
    '1.2',
    '1.2.3.4',
    '-1.2.3',
    '1.99999999999999999.0',
    'a.b.c',
    ' 1.2.3',
    '9'.repeat(60),
  ]) {
    expect(parsePosition(id)).toBeUndefined()
  }
})
