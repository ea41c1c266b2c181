import type { CallOptions } from './connection.ts'
import type { Transport } from './transport.ts'

/** Bytes sent in one request; a longer write is cut. */
const maxChunkBytes = 256 * 1024

/**
 * The standard input of a command created with `stdin: "pipe"`. Each request names the offset of its first byte, so
 * that one sent again after a lost answer adds nothing twice. One write at a time: await each before the next.
 */
export class Stdin {
  readonly #transport: Transport
  readonly #session: { readonly events_url: string; readonly token: string }
  #offset = 0

  constructor(transport: Transport, session: { readonly events_url: string; readonly token: string }) {
    this.#transport = transport
    this.#session = session
  }

  /** Writes all of `bytes`; resolves when the process's pipe has taken them. */
  async write(bytes: Uint8Array, options: CallOptions = {}): Promise<void> {
    for (let at = 0; at < bytes.length; at += maxChunkBytes) {
      const chunk = bytes.subarray(at, at + maxChunkBytes)
      await this.#transport.json({
        method: 'POST',
        url: this.#url('stdin'),
        body: chunk,
        headers: { 'stdin-offset': String(this.#offset) },
        token: this.#session.token,
        waitMs: 3_600_000,
        signal: options.signal,
      })
      this.#offset += chunk.length
    }
  }

  /** Ends the input: the process reads end-of-file behind the last byte. */
  async close(options: CallOptions = {}): Promise<void> {
    await this.#transport.json({
      method: 'POST',
      url: this.#url('stdin/close'),
      token: this.#session.token,
      signal: options.signal,
    })
  }

  /** Tells the process's terminal its size. */
  async resize(cols: number, rows: number, options: CallOptions = {}): Promise<void> {
    await this.#transport.json({
      method: 'POST',
      url: this.#url('resize'),
      body: { cols, rows },
      token: this.#session.token,
      signal: options.signal,
    })
  }

  #url(what: string): string {
    return this.#session.events_url.replace(/\/events$/, `/${what}`)
  }
}
