/** Which of a process's outputs: the numbers of guest.v1's Output.Stream. */
export type StreamNumber = 1 | 2 | 3

interface Chunk {
  readonly stream: StreamNumber
  readonly offset: number
  readonly bytes: Buffer
}

/** How an OutputBuffer is kept in a snapshot. */
export interface SavedOutput {
  readonly nextOffset: number
  readonly acknowledged: number
  readonly chunks: readonly {
    readonly stream: StreamNumber
    readonly offset: number
    readonly base64: string
  }[]
}

/** Most output of a process nobody acknowledged; then its next write waits. */
export const maxUnacknowledgedBytes = 1024 * 1024

/** What a process printed and the node has not acknowledged. */
export class OutputBuffer {
  #chunks: Chunk[] = []
  #nextOffset = 0
  #acknowledged = 0

  get nextOffset(): number {
    return this.#nextOffset
  }

  get acknowledged(): number {
    return this.#acknowledged
  }

  get roomBytes(): number {
    return maxUnacknowledgedBytes - (this.#nextOffset - this.#acknowledged)
  }

  put(stream: StreamNumber, bytes: Buffer): void {
    if (bytes.length === 0) return
    this.#chunks.push({ stream, offset: this.#nextOffset, bytes })
    this.#nextOffset += bytes.length
  }

  acknowledge(offset: number): void {
    this.#acknowledged = Math.max(this.#acknowledged, Math.min(offset, this.#nextOffset))
    const kept = this.#chunks.findIndex((chunk) => chunk.offset + chunk.bytes.length > this.#acknowledged)
    this.#chunks.splice(0, kept < 0 ? this.#chunks.length : kept)
  }

  /** The piece that begins at an offset, at most `maxBytes` of one stream; nothing at the end. */
  at(offset: number, maxBytes: number): Chunk | undefined {
    const chunk = this.#chunks.find((each) => each.offset + each.bytes.length > offset)
    if (chunk === undefined) return undefined
    const start = Math.max(0, offset - chunk.offset)
    return {
      stream: chunk.stream,
      offset: chunk.offset + start,
      bytes: chunk.bytes.subarray(start, start + maxBytes),
    }
  }

  save(): SavedOutput {
    return {
      nextOffset: this.#nextOffset,
      acknowledged: this.#acknowledged,
      chunks: this.#chunks.map(({ stream, offset, bytes }) => ({
        stream,
        offset,
        base64: bytes.toString('base64'),
      })),
    }
  }

  static restore(saved: SavedOutput): OutputBuffer {
    const output = new OutputBuffer()
    output.#nextOffset = saved.nextOffset
    output.#acknowledged = saved.acknowledged
    output.#chunks = saved.chunks.map(({ stream, offset, base64 }) => ({
      stream,
      offset,
      bytes: Buffer.from(base64, 'base64'),
    }))
    return output
  }
}
