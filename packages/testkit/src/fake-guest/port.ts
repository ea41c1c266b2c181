import type { Duplex } from 'node:stream'

/** How much of one write reaches the host in one go: what is cut off in the middle of a write is cut here. */
const sliceBytes = 32 * 1024

interface Pending {
  bytes: Buffer
  readonly writer: object
  readonly done: () => void
}

/**
 * The guest's side of a virtio-serial port. It behaves as badly as the real one: the guest sees no connects and no
 * disconnects, bytes of an earlier connection stay in the queue, a write waits for a host that reads, and while the
 * machine stands still nothing moves.
 */
export class FakePort {
  /** Takes what the host sent; set by the agent, which reads always. */
  reader: ((chunk: Buffer) => void) | undefined
  #host: Duplex | undefined
  #running = true
  #slicing = false
  readonly #pending: Pending[] = []

  /** Connects the host; an earlier connection of it ends. */
  connect(host: Duplex): void {
    this.#host?.destroy()
    this.#host = host
    this.#slicing = false
    host.on('data', (chunk: Buffer) => {
      if (this.#host === host) this.reader?.(chunk)
    })
    host.on('error', () => host.destroy())
    host.once('close', () => {
      if (this.#host === host) this.#host = undefined
    })
    if (!this.#running) host.pause()
    this.#pump()
  }

  disconnect(): void {
    this.#host?.destroy()
    this.#host = undefined
  }

  /** Stops or lets go the guest's side, as its vCPUs do. */
  setRunning(running: boolean): void {
    this.#running = running
    if (running) this.#host?.resume()
    else this.#host?.pause()
    this.#pump()
  }

  /** Queues bytes of one writer; `done` is called once all of them are on their way. */
  write(writer: object, bytes: Buffer, done: () => void): void {
    this.#pending.push({ bytes, writer, done })
    this.#pump()
  }

  /** Gives up what a writer still has waiting, as a write deadline does: what is on its way stays on its way. */
  cancelWrites(writer: object): void {
    const kept = this.#pending.filter((pending) => pending.writer !== writer)
    for (const { writer: owner, done } of this.#pending.splice(0, Number.POSITIVE_INFINITY, ...kept))
      if (owner === writer) done()
  }

  /** The bytes no host has read yet, for a snapshot. */
  queued(): Buffer {
    return Buffer.concat(this.#pending.map(({ bytes }) => bytes))
  }

  #pump(): void {
    const host = this.#host
    const next = this.#pending[0]
    if (this.#slicing || !this.#running || host === undefined || host.destroyed || next === undefined) return
    const slice = next.bytes.subarray(0, sliceBytes)
    next.bytes = next.bytes.subarray(slice.length)
    this.#slicing = true
    host.write(slice, () => {
      if (this.#host !== host) return
      this.#slicing = false
      this.#pump()
    })
    if (next.bytes.length === 0) {
      this.#pending.shift()
      next.done()
    }
  }
}
