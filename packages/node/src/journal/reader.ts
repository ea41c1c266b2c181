/**
 * A reader: everything behind a position, then what follows, until `process_exited`.
 *
 * It holds one file handle and, while it reads, one buffer; what it gives is a view of that buffer and holds until the
 * next item is asked for. When the limit drops what it wants, it says how much went (`gap`) and goes on behind it.
 */
import { type FileHandle, open } from 'node:fs/promises'
import { JournalError } from './errors.ts'
import { decodeEvent, type JournalEvent } from './event.ts'
import type { Journal } from './journal.ts'
import { comparePositions, type Position } from './position.ts'
import { type OutputStream, type PlacedRecord, parseBlock, positionAfter } from './record.ts'
import { placeBefore, readBytes, type Segment } from './segment.ts'

/** `position` is the one behind the item: where to resume. */
export type JournalItem =
  | {
      readonly kind: 'output'
      readonly position: Position
      readonly stream: OutputStream
      readonly offset: number
      readonly data: Buffer
    }
  | { readonly kind: 'event'; readonly position: Position; readonly event: JournalEvent }
  | { readonly kind: 'gap'; readonly position: Position; readonly lostBytes: number }

/** Reads from a position on. Ends behind `process_exited`, or when the journal is closed; rejects with the signal. */
export async function* readJournal(
  journal: Journal,
  from: Position,
  options: { readonly signal?: AbortSignal } = {},
): AsyncGenerator<JournalItem, void, undefined> {
  const place = new Place()
  try {
    let position = from
    if (from.epoch !== journal.written.epoch) {
      position = { epoch: journal.written.epoch, offset: journal.firstOffset, n: 0 }
      yield { kind: 'gap', position, lostBytes: 0 }
    }
    for (;;) {
      options.signal?.throwIfAborted()
      const gap = missing(journal, position)
      if (gap > 0 && !place.holds(position)) {
        position = { epoch: position.epoch, offset: position.offset + gap, n: 0 }
        yield { kind: 'gap', position, lostBytes: gap }
        continue
      }
      const block = await place.read(journal, position)
      if (block === 'end') {
        place.rest()
        if (journal.endedAt !== undefined || journal.closed) return
        await journal.changed(options.signal)
        continue
      }
      for (const record of block) {
        const item = itemAfter(record, position)
        if (item === undefined) continue
        position = item.position
        yield item
      }
    }
  } finally {
    await place.close()
  }
}

function missing(journal: Journal, position: Position): number {
  return Math.max(0, journal.firstOffset - position.offset)
}

/** What of a record lies behind a position. */
function itemAfter(record: PlacedRecord, position: Position): JournalItem | undefined {
  const after = positionAfter(record)
  const order = comparePositions(after, position)
  if (record.kind === 'event') {
    const event = decodeEvent(record.data)
    // The end is told even to who asked for bytes that never came.
    const wanted = event?.event === 'process_exited' ? order !== 0 : order > 0
    return wanted && event !== undefined ? { kind: 'event', position: after, event } : undefined
  }
  if (order <= 0) return undefined
  const skip = Math.max(0, position.offset - record.offset)
  const data = skip === 0 ? record.data : record.data.subarray(skip)
  return { kind: 'output', position: after, stream: record.kind, offset: record.offset + skip, data }
}

interface Opened {
  readonly segment: Segment
  readonly file: FileHandle
  filePosition: number
}

/** Where a reader is in the files. */
class Place {
  #open: Opened | undefined
  #buffer: Buffer | undefined

  /** Whether the segment that is open has this position, dropped or not. */
  holds(position: Position): boolean {
    return this.#open !== undefined && comparePositions(this.#open.segment.start, position) <= 0
  }

  /** The next records in the order they were written (none: look again), or `end` when all that is written was given. */
  async read(journal: Journal, position: Position): Promise<readonly PlacedRecord[] | 'end'> {
    const at = this.#open
    if (at === undefined) return await this.#enter(journal, segmentOf(journal, position), position)
    const available = at.segment.bytes - at.filePosition
    if (available > 0) return await this.#block(at, available)
    const next = journal.segments.find((segment) => segment.sequence > at.segment.sequence)
    if (next === undefined) return 'end'
    await this.close()
    // When one between the two was dropped, the caller counts what went before it looks again.
    return next.start.offset > position.offset ? [] : await this.#enter(journal, next, position)
  }

  async #block(at: Opened, available: number): Promise<readonly PlacedRecord[]> {
    this.#buffer ??= Buffer.allocUnsafeSlow(readBytes)
    const { bytesRead } = await at.file.read(this.#buffer, 0, Math.min(available, readBytes), at.filePosition)
    const block = parseBlock(this.#buffer.subarray(0, bytesRead))
    if (block.consumed === 0) {
      throw new JournalError('journal_corrupt', `${at.segment.path} at ${at.filePosition}`)
    }
    at.filePosition += block.consumed
    return block.records
  }

  async #enter(journal: Journal, segment: Segment | undefined, position: Position): Promise<[] | 'end'> {
    if (segment === undefined) return 'end'
    try {
      const file = await open(segment.path, 'r')
      this.#open = { segment, file, filePosition: placeBefore(segment, position) }
      return []
    } catch (error) {
      if (journal.closed) return 'end'
      // Dropped between the look and the opening: what is there now is looked up anew.
      if (!journal.segments.includes(segment)) return []
      throw error
    }
  }

  /** Lets go of the buffer while there is nothing to read. */
  rest(): void {
    this.#buffer = undefined
  }

  async close(): Promise<void> {
    const at = this.#open
    this.#open = undefined
    await at?.file.close()
  }
}

/** The last segment that starts at or before a position, else the oldest one there is. */
function segmentOf(journal: Journal, position: Position): Segment | undefined {
  return (
    journal.segments.findLast((segment) => comparePositions(segment.start, position) <= 0) ??
    journal.segments[0]
  )
}
