import { Duplex } from 'node:stream'
import { type Bucket, createBucket } from './bucket.ts'
import type { LinkBudgets } from './budgets.ts'
import { GuestLinkError } from './errors.ts'
import { createFrameMeter, type FrameMeter } from './frame-meter.ts'
import type { EchoSkipper } from './handshake.ts'

/** How long bytes that came before the end may wait to be read. */
const lingerMs = 1_000

/**
 * The byte stream of one session as HTTP/2 sees it: behind the handshake, with repeated ECHO frames taken out and the
 * guest held to its budgets. Too many bytes pause the socket; too many control frames destroy the stream with a
 * GuestLinkError. Once the underlying stream has ended and what it brought is read, this one is destroyed: left half
 * open it would let HTTP/2 write into a shutdown that never completes, which ends the process.
 */
export class ChannelStream extends Duplex {
  readonly #inner: Duplex
  readonly #skipper: EchoSkipper
  readonly #meter: FrameMeter
  readonly #budgets: LinkBudgets
  readonly #bytes: Bucket
  readonly #controlFrames: Bucket
  #wanted = false
  #pausedUntil: NodeJS.Timeout | undefined
  #lingering: NodeJS.Timeout | undefined

  constructor(inner: Duplex, skipper: EchoSkipper, budgets: LinkBudgets) {
    super({ readableHighWaterMark: 256 * 1024, writableHighWaterMark: 256 * 1024 })
    const nowMs = performance.now()
    this.#inner = inner
    this.#skipper = skipper
    this.#budgets = budgets
    this.#meter = createFrameMeter(budgets)
    this.#bytes = createBucket(budgets.maxBytesPerSecond, budgets.burstBytes, nowMs)
    this.#controlFrames = createBucket(budgets.controlFramesPerSecond, budgets.controlFrameBurst, nowMs)
    inner.pause()
    inner.on('data', (chunk: Buffer) => this.#take(chunk))
    inner.once('end', () => this.#finishReading())
    inner.once('close', () => this.#finishReading())
    this.once('end', () => this.destroy())
    inner.on('error', (error) => this.destroy(error))
  }

  /** Whether the other end is gone: false while this stream is whole, or when it was ended from this side. */
  get peerGone(): boolean {
    return this.#lingering !== undefined || this.errored !== null
  }

  /** Bytes that were read together with the end of the handshake. */
  begin(rest: Buffer): void {
    if (rest.length > 0) this.#take(rest)
  }

  override _read(): void {
    this.#wanted = true
    if (this.#pausedUntil === undefined) this.#inner.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#earn(chunk.length)
    this.#inner.write(chunk, done)
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#inner.cork()
    for (const [index, { chunk }] of chunks.entries()) {
      this.#earn(chunk.length)
      this.#inner.write(chunk, index === chunks.length - 1 ? done : undefined)
    }
    this.#inner.uncork()
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#inner.end()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#pausedUntil)
    clearTimeout(this.#lingering)
    this.#inner.destroy()
    done(error)
  }

  #take(raw: Buffer): void {
    if (this.destroyed || this.#lingering !== undefined) return
    try {
      const chunk = this.#skipper.push(raw)
      const { frames, controlFrames } = this.#meter.push(chunk)
      const nowMs = performance.now()
      if (controlFrames > 0 && this.#controlFrames.take(controlFrames, nowMs) > 0)
        throw new GuestLinkError(
          'control_flood',
          `more than ${this.#budgets.controlFramesPerSecond} frames a second`,
        )
      const cost = Math.max(raw.length, frames * this.#budgets.minFrameCostBytes)
      const waitMs = this.#bytes.take(cost, nowMs)
      this.#wanted = chunk.length === 0 || this.push(chunk)
      if (waitMs > 0) this.#pauseFor(waitMs)
      else if (!this.#wanted) this.#inner.pause()
    } catch (error) {
      this.destroy(error instanceof Error ? error : new GuestLinkError('protocol_error', String(error)))
    }
  }

  #finishReading(): void {
    if (this.#lingering !== undefined || this.destroyed) return
    this.#lingering = setTimeout(() => this.destroy(), lingerMs)
    this.push(null)
  }

  #pauseFor(waitMs: number): void {
    this.#inner.pause()
    clearTimeout(this.#pausedUntil)
    this.#pausedUntil = setTimeout(() => {
      this.#pausedUntil = undefined
      if (this.#wanted && !this.destroyed) this.#inner.resume()
    }, waitMs)
  }

  #earn(bytes: number): void {
    this.#controlFrames.add(bytes / this.#budgets.sentBytesPerControlFrame)
  }
}
