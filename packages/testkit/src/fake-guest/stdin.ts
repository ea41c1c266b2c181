/** How a StdinPipe is kept in a snapshot. */
export interface SavedStdin {
  readonly received: number
  readonly taken: number
  readonly closed: boolean
  readonly waiting: string
}

/** Most stdin that waits for a process to read it: a pipe's 64 KiB and what the agent holds beside it. */
const pipeBytes = 64 * 1024
const maxWaitingBytes = 1024 * 1024

/** What is written to a process's standard input, by offset. */
export class StdinPipe {
  #waiting = Buffer.alloc(0)
  /** Bytes below were received. */
  #received = 0
  /** Bytes below were read by the program. */
  #taken = 0
  #closed = false

  /** Bytes written into the pipe so far: what the program read, and a pipe's worth ahead. */
  get nextOffset(): number {
    return Math.min(this.#received, this.#taken + pipeBytes)
  }

  get atEnd(): boolean {
    return this.#closed && this.#waiting.length === 0
  }

  /** Takes a piece; bytes received before are skipped, and all of them once it is closed. */
  put(offset: number, bytes: Uint8Array): 'taken' | 'gap' | 'full' {
    const known = this.#received - offset
    if (known < 0) return 'gap'
    if (this.#closed) return 'taken'
    const fresh = bytes.subarray(Math.min(known, bytes.length))
    if (this.#waiting.length + fresh.length > maxWaitingBytes) return 'full'
    this.#waiting = Buffer.concat([this.#waiting, fresh])
    this.#received += fresh.length
    return 'taken'
  }

  close(offset: number): 'taken' | 'gap' {
    if (offset > this.#received) return 'gap'
    this.#closed = true
    return 'taken'
  }

  peek(maxBytes: number): Buffer {
    return this.#waiting.subarray(0, maxBytes)
  }

  take(bytes: number): void {
    this.#waiting = this.#waiting.subarray(bytes)
    this.#taken += bytes
  }

  save(): SavedStdin {
    return {
      received: this.#received,
      taken: this.#taken,
      closed: this.#closed,
      waiting: this.#waiting.toString('base64'),
    }
  }

  static restore(saved: SavedStdin): StdinPipe {
    const stdin = new StdinPipe()
    stdin.#received = saved.received
    stdin.#taken = saved.taken
    stdin.#closed = saved.closed
    stdin.#waiting = Buffer.from(saved.waiting, 'base64')
    return stdin
  }
}
