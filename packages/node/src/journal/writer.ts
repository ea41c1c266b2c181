/**
 * The one writer of a journal.
 *
 *   append ─▶ pending (≤ maxPendingBytes) ─▶ write ─▶ onWritten (the agent may forget) ─▶ sync each second, at the end
 *                                              │ segment full: the next one begins, the oldest goes
 *
 * What is there already is skipped and a gap is an error, so the same bytes may be sent again after any loss (B1).
 * A failed write (a full disk) is tried again and holds the guest back; it loses nothing.
 */
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { JournalError } from './errors.ts'
import { encodeEvent, type JournalEvent } from './event.ts'
import type { Journal } from './journal.ts'
import { type JournalLimits, journalLimits } from './limits.ts'
import { addOutput, encodedBytes, encodePending, type PendingRecord, takeBatch } from './pending.ts'
import type { Position } from './position.ts'
import { maxRecordDataBytes, type OutputStream } from './record.ts'
import { noteMark, type Segment } from './segment.ts'
import { Waiters } from './waiters.ts'

export interface JournalWriterOptions {
  readonly limits?: JournalLimits
  /** Told after each write that can be read and acknowledged, with the next offset. */
  readonly onWritten?: (nextOffset: number) => void
  /** Told once when there is something to sync. */
  readonly onDirty?: () => void
  /** Told when a write failed and will be tried again. */
  readonly onWriteError?: (error: unknown) => void
}

export class JournalWriter {
  readonly journal: Journal
  readonly #options: JournalWriterOptions
  readonly #limits: JournalLimits
  readonly #progress = new Waiters()
  readonly #closing = new AbortController()
  #tail: Position
  #ended: boolean
  #pending: PendingRecord[] = []
  #pendingBytes = 0
  #current: { readonly segment: Segment; readonly file: FileHandle } | undefined
  #full: FileHandle[] = []
  #dirty = false
  #loop: Promise<void> | undefined
  #syncing: Promise<void> = Promise.resolve()

  constructor(journal: Journal, options: JournalWriterOptions = {}) {
    this.journal = journal
    this.#options = options
    this.#limits = options.limits ?? journalLimits
    this.#tail = journal.written
    this.#ended = journal.endedAt !== undefined
  }

  /** Behind the last byte appended: the first one wanted from the agent. */
  get nextOffset(): number {
    return this.#tail.offset
  }

  /** Whether anything was ever recorded. */
  get begun(): boolean {
    return this.#tail.offset > 0 || this.#tail.n > 0
  }

  /** Takes output from `offset` on; throws `journal_gap` when bytes before it are missing. */
  append(stream: OutputStream, offset: number, data: Uint8Array): void {
    this.#mustAccept()
    const skip = this.#tail.offset - offset
    if (skip < 0) throw new JournalError('journal_gap', `output at ${offset}, expected ${this.#tail.offset}`)
    for (let from = skip; from < data.length; from += maxRecordDataBytes) {
      const piece = data.subarray(from, from + maxRecordDataBytes)
      addOutput(this.#pending, stream, this.#tail, piece)
      this.#tail = { epoch: this.#tail.epoch, offset: this.#tail.offset + piece.length, n: 0 }
      this.#pendingBytes += piece.length
    }
    this.#start()
  }

  /** Records an event at the present offset. Nothing follows `process_exited`. */
  event(event: JournalEvent): void {
    this.#mustAccept()
    const data = encodeEvent(event)
    this.#tail = { ...this.#tail, n: this.#tail.n + 1 }
    this.#ended = event.event === 'process_exited'
    this.#pending.push({ kind: 'event', at: this.#tail, chunks: [data], bytes: data.length })
    this.#pendingBytes += data.length
    this.#start()
  }

  /** Resolves when so little waits to be written that more may be appended. */
  async room(signal?: AbortSignal): Promise<void> {
    while (this.#pendingBytes > this.#limits.maxPendingBytes) await this.#progress.wait(signal)
  }

  /** Resolves when everything appended so far can be read. */
  async flush(signal?: AbortSignal): Promise<void> {
    while (this.#pendingBytes > 0) {
      this.#closing.signal.throwIfAborted()
      await this.#progress.wait(signal)
    }
  }

  /** Makes what is written survive a loss of power. */
  sync(): Promise<void> {
    this.#syncing = this.#syncing.catch(() => undefined).then(() => this.#syncNow())
    return this.#syncing
  }

  /** Writes and syncs what waits and lets go of the file. What a failing disk does not take stays with the agent. */
  async close(): Promise<void> {
    this.#closing.abort(new JournalError('journal_closed', `${this.journal.folder} is closed`))
    await this.#loop
    this.#progress.wake()
    await this.sync()
    const current = this.#current
    this.#current = undefined
    await current?.file.close()
  }

  #mustAccept(): void {
    this.#closing.signal.throwIfAborted()
    if (this.#ended) throw new JournalError('journal_ended', `${this.journal.folder} has its exit`)
  }

  #start(): void {
    this.#loop ??= this.#writeAll().finally(() => {
      this.#loop = undefined
    })
  }

  async #writeAll(): Promise<void> {
    // The turn after an append often brings more of it: one write takes both.
    await Promise.resolve()
    while (this.#pending.length > 0) {
      const batch = takeBatch(this.#pending, this.#limits.maxPendingBytes)
      if (!(await this.#writeUntilDone(batch))) return
      for (const record of batch) this.#pendingBytes -= record.bytes
      this.#progress.wake()
      this.#options.onWritten?.(this.journal.written.offset)
    }
  }

  /** False when the writer is closed before the disk takes the bytes. */
  async #writeUntilDone(batch: PendingRecord[]): Promise<boolean> {
    for (;;) {
      try {
        await this.#write(batch)
        return true
      } catch (error) {
        this.#options.onWriteError?.(error)
      }
      try {
        await delay(this.#limits.retryMs, undefined, { signal: this.#closing.signal })
      } catch {
        this.#pending.unshift(...batch)
        return false
      }
    }
  }

  async #write(batch: readonly PendingRecord[]): Promise<void> {
    const { segment, file } = await this.#place()
    const pieces = encodePending(batch)
    const wanted = pieces.reduce((sum, piece) => sum + piece.length, 0)
    const { bytesWritten } = await file.writev(pieces, segment.bytes)
    if (bytesWritten !== wanted)
      throw new JournalError('journal_short_write', `${bytesWritten} of ${wanted} bytes`)
    let filePosition = segment.bytes
    let before = this.journal.written
    for (const record of batch) {
      noteMark(segment, filePosition, before)
      filePosition += encodedBytes(record)
      before =
        record.kind === 'event'
          ? record.at
          : { epoch: record.at.epoch, offset: record.at.offset + record.bytes, n: 0 }
    }
    segment.bytes = filePosition
    this.journal.advance(before, this.#ended && this.#pending.length === 0 && batch.at(-1)?.kind === 'event')
    this.#markDirty()
  }

  async #place(): Promise<{ readonly segment: Segment; readonly file: FileHandle }> {
    if (this.#current !== undefined && this.#current.segment.bytes < this.#limits.segmentBytes)
      return this.#current
    const last = this.journal.segments.at(-1)
    if (this.#current === undefined && last !== undefined && last.bytes < this.#limits.segmentBytes) {
      this.#current = { segment: last, file: await open(last.path, 'r+') }
      return this.#current
    }
    const full = this.#current
    const segment = this.journal.next()
    this.#current = { segment, file: await open(segment.path, 'w', 0o600) }
    this.journal.begin(segment)
    if (full !== undefined) this.#full.push(full.file)
    for (const dropped of this.journal.drop(this.#limits.keepBytes)) await unlink(dropped.path)
    return this.#current
  }

  #markDirty(): void {
    if (this.#dirty) return
    this.#dirty = true
    this.#options.onDirty?.()
  }

  async #syncNow(): Promise<void> {
    this.#dirty = false
    const full = this.#full
    this.#full = []
    for (const file of full) {
      await file.datasync()
      await file.close()
    }
    await this.#current?.file.datasync()
  }
}
