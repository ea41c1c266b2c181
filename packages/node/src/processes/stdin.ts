/**
 * The way into a process: bytes with offsets, each piece confirmed by the agent before the next is sent, so that a lost
 * link or a repeated request gives the program no byte twice and none is missing.
 *
 *   sent ≥ confirmed: what the agent was given, and what it wrote into the pipe
 */
import { limits, PublicError } from '@space/contract'
import type { AttachRequests } from '../guest/index.ts'
import { Waiters } from '../journal/index.ts'

type Phase =
  | { readonly kind: 'detached' }
  | { readonly kind: 'attached'; readonly requests: AttachRequests }
  | { readonly kind: 'broken_pipe' }
  | { readonly kind: 'ended' }

export class Stdin {
  readonly #changed = new Waiters()
  #phase: Phase = { kind: 'detached' }
  #sent = 0
  #confirmed = 0
  #turn: Promise<unknown> = Promise.resolve()
  #waitingTurns = 0

  /** The link carries requests again; the agent has written `confirmed` bytes so far. */
  attached(requests: AttachRequests, confirmed: number): void {
    if (this.#phase.kind !== 'detached') return
    this.#confirm(confirmed)
    this.#phase = { kind: 'attached', requests }
    this.#changed.wake()
  }

  detached(): void {
    if (this.#phase.kind === 'attached') this.#phase = { kind: 'detached' }
    this.#changed.wake()
  }

  /** What the agent says of the pipe. */
  state(nextOffset: number, brokenPipe: boolean): void {
    this.#confirm(nextOffset)
    if (brokenPipe && this.#phase.kind !== 'ended') this.#phase = { kind: 'broken_pipe' }
    this.#changed.wake()
  }

  #confirm(offset: number): void {
    this.#confirmed = Math.max(this.#confirmed, offset)
    this.#sent = Math.max(this.#sent, this.#confirmed)
  }

  ended(): void {
    this.#phase = { kind: 'ended' }
    this.#changed.wake()
  }

  /**
   * Writes from `offset` on, or behind what was written. Resolves with the next offset once the program's pipe has all
   * of it. Throws `conflict` with the expected offset for a gap, `failed_precondition` when nobody can read it.
   */
  write(offset: number | undefined, data: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<number> {
    return this.#inTurn(async () => {
      let position = offset ?? this.#sent
      if (position > this.#sent) throw gap(this.#sent)
      for await (const chunk of data) {
        for (let from = 0; from < chunk.length; from += limits.stdin_chunk_bytes) {
          const piece = chunk.subarray(from, from + limits.stdin_chunk_bytes)
          await this.#give(position, piece, signal)
          position += piece.length
        }
      }
      this.#mustBeReadable()
      return Math.max(position, this.#confirmed)
    })
  }

  /** Closes the pipe behind everything written. Closing twice is fine. */
  close(signal: AbortSignal): Promise<void> {
    return this.#inTurn(async () => {
      for (;;) {
        const requests = await this.#requests(signal)
        if (await requests.stdinClose(BigInt(this.#sent))) return
      }
    })
  }

  /** Tells a terminal its size. */
  async resize(cols: number, rows: number, signal: AbortSignal): Promise<void> {
    const requests = await this.#requests(signal)
    await requests.resize(cols, rows)
  }

  /** Gives one piece and waits until the pipe has it; again on the next link when this one is lost. */
  async #give(position: number, piece: Uint8Array, signal: AbortSignal): Promise<void> {
    const end = position + piece.length
    while (this.#confirmed < end) {
      const requests = await this.#requests(signal)
      const skip = Math.max(0, this.#confirmed - position)
      if (!(await requests.stdin(BigInt(position + skip), piece.subarray(skip)))) continue
      this.#sent = Math.max(this.#sent, end)
      while (this.#confirmed < end && this.#phase.kind === 'attached' && this.#phase.requests === requests) {
        await this.#changed.wait(signal)
      }
    }
  }

  async #requests(signal: AbortSignal): Promise<AttachRequests> {
    for (;;) {
      this.#mustBeReadable()
      if (this.#phase.kind === 'attached') return this.#phase.requests
      await this.#changed.wait(signal)
    }
  }

  #mustBeReadable(): void {
    if (this.#phase.kind === 'broken_pipe') throw brokenPipe()
    if (this.#phase.kind === 'ended') throw notRunning()
  }

  /** One writer at a time, in the order they came. */
  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waitingTurns >= maxWaitingWrites) throw tooManyWrites()
    this.#waitingTurns += 1
    const before = this.#turn
    const done = before.then(work).finally(() => {
      this.#waitingTurns -= 1
    })
    this.#turn = done.catch(() => undefined)
    return await done
  }
}

const maxWaitingWrites = 32

function gap(expected: number): PublicError {
  const message = `Stdin-Offset is beyond what was written: send the bytes from ${expected} on.`
  return new PublicError('conflict', message, { details: { expected }, retryable: false })
}

function brokenPipe(): PublicError {
  const message = 'The process closed its stdin: nothing more can be written to it.'
  return new PublicError('failed_precondition', message, { details: { reason: 'broken_pipe' } })
}

function notRunning(): PublicError {
  const message = 'The process has ended: nothing can be written to it.'
  return new PublicError('failed_precondition', message, { details: { reason: 'process_ended' } })
}

function tooManyWrites(): PublicError {
  return new PublicError(
    'conflict',
    `${maxWaitingWrites} writes already wait for this process: send one at a time.`,
  )
}
