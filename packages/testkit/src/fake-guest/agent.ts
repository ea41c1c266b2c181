import { createServer, type Http2Server } from 'node:http2'
import { Duplex } from 'node:stream'
import type { ConnectRouter } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import type { FakePort } from './port.ts'
import { createScanner } from './scanner.ts'

/** What the agent needs of the guest it runs in. */
export interface AgentHost {
  /** The prefix that announces the next handshake. */
  prefix(): Buffer
  /** An InfoResponse in protobuf, as it is now. */
  hello(): Uint8Array
  routes(router: ConnectRouter): void
}

const mib = 1024 * 1024

/**
 * The agent's end of the guest channel: answers a HELLO at any time, also inside a session, and serves HTTP/2 from the
 * byte behind a GO of the newest nonce. No byte of a dead session follows an ECHO.
 */
export class FakeAgent {
  readonly #port: FakePort
  readonly #host: AgentHost
  readonly #server: Http2Server
  #newestNonce: Buffer | undefined
  #session: SessionStream | undefined

  constructor(port: FakePort, host: AgentHost) {
    this.#port = port
    this.#host = host
    const handler = connectNodeAdapter({
      routes: (router) => host.routes(router),
      acceptCompression: [],
      readMaxBytes: mib,
      writeMaxBytes: mib,
    })
    const settings = { initialWindowSize: mib, maxConcurrentStreams: 8_192 }
    this.#server = createServer({ settings, maxSessionMemory: 256 }, handler)
    this.#server.on('sessionError', () => this.#session?.destroy())
    const scan = createScanner(() => host.prefix())
    port.reader = (chunk) => {
      for (const found of scan(chunk)) {
        if (found.kind === 'data') this.#session?.push(found.bytes)
        else if (found.kind === 'hello') this.#echo(found.nonce)
        else if (this.#newestNonce?.equals(found.nonce) === true) this.#begin()
      }
    }
  }

  /** Ends the session without a word, as a crash does. */
  close(): void {
    this.#session?.destroy()
    this.#server.close()
  }

  #echo(nonce: Buffer): void {
    this.#session?.destroy()
    this.#session = undefined
    this.#newestNonce = nonce
    const body = this.#host.hello()
    const length = Buffer.alloc(4)
    length.writeUInt32BE(body.length)
    const echo = Buffer.concat([this.#host.prefix(), Buffer.from('E'), nonce, length, body])
    this.#port.write(this, echo, nothing)
  }

  #begin(): void {
    this.#newestNonce = undefined
    this.#session = new SessionStream(this.#port)
    this.#server.emit('connection', this.#session)
  }
}

/** One session's byte stream over the port; once destroyed it writes nothing more. */
class SessionStream extends Duplex {
  readonly #port: FakePort

  constructor(port: FakePort) {
    super({ writableHighWaterMark: 256 * 1024 })
    this.#port = port
    this.on('error', nothing)
  }

  // The scanner goes on looking for a HELLO whatever the session does: bytes are pushed, never asked for.
  override _read(): void {
    return
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#port.write(this, chunk, done)
  }

  override _destroy(_error: Error | null, done: (error?: Error | null) => void): void {
    this.#port.cancelWrites(this)
    done()
  }
}

function nothing(): void {
  // What happens to a dead session is no news.
}
