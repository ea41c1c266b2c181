/**
 * An incremental parser of `text/event-stream`, for chunks cut anywhere, down to single bytes. It works on bytes and
 * decodes whole lines only, so that a character cut in two arrives whole. What it holds between chunks is bounded.
 */
import { clientError } from './errors.ts'

export interface ServerEvent {
  readonly event: string
  readonly data: string
  /** The id this event carried, or the last one before it; empty when there was none. */
  readonly id: string
}

/** Longest event taken, in bytes: twelve times the largest a node sends. */
export const maxEventBytes = 4 * 1024 * 1024

const lineFeed = 10
const carriageReturn = 13

export class EventParser {
  /** The wait before a reconnect the server asked for by `retry:`, in milliseconds. */
  retryMs: number | undefined
  readonly #maxBytes: number
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  #parts: Uint8Array[] = []
  #partBytes = 0
  #afterCarriageReturn = false
  #firstLine = true
  #event = ''
  #data: string[] = []
  #dataLength = 0
  #id = ''

  constructor(maxBytes: number = maxEventBytes) {
    this.#maxBytes = maxBytes
  }

  /** Takes the next bytes and returns the events they complete. Throws `protocol_error` on an event above the limit. */
  push(chunk: Uint8Array): ServerEvent[] {
    const events: ServerEvent[] = []
    let start = 0
    if (this.#afterCarriageReturn && chunk.length > 0) {
      this.#afterCarriageReturn = false
      if (chunk[0] === lineFeed) start = 1
    }
    let nextReturn = chunk.indexOf(carriageReturn, start)
    let nextFeed = chunk.indexOf(lineFeed, start)
    while (nextReturn >= 0 || nextFeed >= 0) {
      const byReturn = nextReturn >= 0 && (nextFeed < 0 || nextReturn < nextFeed)
      const end = byReturn ? nextReturn : nextFeed
      this.#takeLine(this.#line(chunk.subarray(start, end)), events)
      start = end + 1
      if (byReturn && start === chunk.length) this.#afterCarriageReturn = true
      if (byReturn && chunk[start] === lineFeed) start++
      if (nextReturn >= 0 && nextReturn < start) nextReturn = chunk.indexOf(carriageReturn, start)
      if (nextFeed >= 0 && nextFeed < start) nextFeed = chunk.indexOf(lineFeed, start)
    }
    if (start < chunk.length) this.#keep(chunk.slice(start))
    return events
  }

  #keep(part: Uint8Array): void {
    this.#partBytes += part.length
    this.#checkSize()
    this.#parts.push(part)
  }

  #line(tail: Uint8Array): string {
    this.#partBytes += tail.length
    this.#checkSize()
    let text: string
    if (this.#parts.length === 0) text = this.#decoder.decode(tail)
    else {
      const whole = new Uint8Array(this.#partBytes)
      let at = 0
      for (const part of this.#parts) {
        whole.set(part, at)
        at += part.length
      }
      whole.set(tail, at)
      text = this.#decoder.decode(whole)
    }
    this.#parts = []
    this.#partBytes = 0
    if (!this.#firstLine) return text
    this.#firstLine = false
    return text.startsWith('\uFEFF') ? text.slice(1) : text
  }

  #takeLine(line: string, events: ServerEvent[]): void {
    if (line === '') {
      if (this.#data.length > 0)
        events.push({ event: this.#event || 'message', data: this.#data.join('\n'), id: this.#id })
      this.#event = ''
      this.#data = []
      this.#dataLength = 0
      return
    }
    const colon = line.indexOf(':')
    if (colon === 0) return
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (field === 'data') {
      this.#dataLength += value.length + 1
      this.#checkSize()
      this.#data.push(value)
    } else if (field === 'event') this.#event = value
    else if (field === 'id') {
      if (!value.includes('\0')) this.#id = value
    } else if (field === 'retry' && /^\d{1,9}$/.test(value)) this.retryMs = Number(value)
  }

  #checkSize(): void {
    if (this.#partBytes + this.#dataLength > this.#maxBytes)
      throw clientError(
        'protocol_error',
        `an event of the stream is longer than ${this.#maxBytes} bytes`,
        false,
      )
  }
}
