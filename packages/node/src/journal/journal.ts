/**
 * The output of one process on disk, the only buffer between a guest and its readers.
 *
 *   guest ─▶ JournalWriter ─▶ segments ─▶ readers, each with a file handle and a position of its own
 *
 * A reader that stalls costs nothing (B3). Bytes are in order and each is written once (B1). `process_exited` is the
 * last record (B2). This object is the reading side: what is written, and a call when that grows.
 */
import { mkdir } from 'node:fs/promises'
import { isEndEvent } from './event.ts'
import type { Position } from './position.ts'
import { listSegments, newSegment, origin, recoverSegment, type Segment } from './segment.ts'
import { Waiters } from './waiters.ts'

export class Journal {
  readonly folder: string
  readonly #segments: Segment[]
  readonly #changed = new Waiters()
  #written: Position
  #endedAt: Position | undefined
  #closed = false

  /** Use `openJournal`. */
  constructor(folder: string, segments: Segment[], written: Position, endedAt: Position | undefined) {
    this.folder = folder
    this.#segments = segments
    this.#written = written
    this.#endedAt = endedAt
  }

  /** Behind the last record that can be read. */
  get written(): Position {
    return this.#written
  }

  /** Behind `process_exited`, once that is written. */
  get endedAt(): Position | undefined {
    return this.#endedAt
  }

  /** The first byte that is kept; everything below was dropped by the limit. */
  get firstOffset(): number {
    return this.#segments[0]?.start.offset ?? 0
  }

  /** Oldest first. */
  get segments(): readonly Segment[] {
    return this.#segments
  }

  /** Nothing will be added and the files may go: readers end where they are. */
  get closed(): boolean {
    return this.#closed
  }

  /** Resolves at the next change of what can be read. */
  changed(signal?: AbortSignal): Promise<void> {
    return this.#changed.wait(signal)
  }

  /** For the writer: everything up to here can be read. */
  advance(written: Position, ended: boolean): void {
    this.#written = written
    if (ended) this.#endedAt = written
    this.#changed.wake()
  }

  /** For the writer: the segment that would follow at the end of what is written. */
  next(): Segment {
    return newSegment(this.folder, (this.#segments.at(-1)?.sequence ?? 0) + 1, this.#written)
  }

  /** For the writer: the segment exists from now on. */
  begin(segment: Segment): void {
    this.#segments.push(segment)
  }

  /** For the writer: takes out the oldest segments while what remains is at least `keepBytes`. */
  drop(keepBytes: number): Segment[] {
    let total = this.#segments.reduce((sum, segment) => sum + segment.bytes, 0)
    const dropped: Segment[] = []
    while (this.#segments.length > 1) {
      const oldest = this.#segments[0]
      if (oldest === undefined || total - oldest.bytes < keepBytes) break
      this.#segments.shift()
      total -= oldest.bytes
      dropped.push(oldest)
    }
    return dropped
  }

  close(): void {
    this.#closed = true
    this.#changed.wake()
  }
}

/** Opens what a folder holds, or begins an empty journal there; a tail torn by a crash is cut. */
export async function openJournal(folder: string): Promise<Journal> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const segments = await listSegments(folder)
  const last = segments.at(-1)
  if (last === undefined) return new Journal(folder, [], origin, undefined)
  const recovered = await recoverSegment(last, isEndEvent)
  return new Journal(folder, segments, recovered.position, recovered.endedAt)
}

/** Begins a journal in a folder that does not exist. */
export async function newJournal(folder: string): Promise<Journal> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  return new Journal(folder, [], origin, undefined)
}
