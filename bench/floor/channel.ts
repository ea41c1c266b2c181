/**
 * The guest channel as it is, with nothing of the product in between: a handshake, then Connect (protobuf) on one
 * HTTP/2 session over the socket of the virtio-serial port.
 */
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { FloorError } from './errors.ts'
import { shakeHands } from './handshake.ts'
import { type AttachEvent, ackRequest, forgetRequest, readAttachResponse, startRequest } from './messages.ts'

const service = '/space.guest.v1.GuestService'
const streamWindowBytes = 4 * 1024 * 1024
const connectionWindowBytes = 16 * 1024 * 1024
const maxFrameBytes = 256 * 1024
const maxMessageBytes = 1_048_576
const ackEveryBytes = 256 * 1024
const endStream = 2

export interface Channel {
  /** The `InfoResponse` of the handshake. */
  readonly info: Buffer
  unary(method: string, request: Buffer): Promise<Buffer>
  /** Starts a program and hands each event over; resolves after its exit, which must be code 0. */
  run(argv: readonly string[], onEvent?: (event: AttachEvent) => void): Promise<void>
  close(): void
}

/** Opens the channel behind a Unix socket; the agent may still be booting, for at most `timeoutMs`. */
export async function openChannel(path: string, timeoutMs: number): Promise<Channel> {
  const socket = await connected(path)
  const info = await shakeHands(socket, timeoutMs)
  const session = connectHttp2('http://guest.invalid', {
    createConnection: () => socket,
    settings: { enablePush: false, initialWindowSize: streamWindowBytes, maxFrameSize: maxFrameBytes },
  })
  session.on('error', () => socket.destroy())
  session.once('connect', () => session.setLocalWindowSize(connectionWindowBytes))
  let count = 0
  return {
    info,
    unary: (method, request) => unary(session, method, request),
    async run(argv, onEvent) {
      const id = `prcfloor${(++count).toString().padStart(8, '0')}${process.hrtime.bigint().toString(36)}`
      await attach(session, id, argv, onEvent ?? (() => undefined))
      await unary(session, 'Forget', forgetRequest([id]))
    },
    close() {
      session.destroy()
      socket.destroy()
    },
  }
}

function connected(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path)
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      socket.pause()
      resolve(socket)
    })
  })
}

function unary(session: ClientHttp2Session, method: string, request: Buffer): Promise<Buffer> {
  const stream = open(session, method, 'application/proto')
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let status = 0
    stream.on('response', (headers) => {
      status = Number(headers[':status'])
    })
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('error', reject)
    stream.on('end', () => {
      const body = Buffer.concat(chunks)
      if (status === 200) resolve(body)
      else reject(new FloorError(`${method} answered ${status}: ${body.toString().slice(0, 300)}`))
    })
    stream.end(request)
  })
}

function attach(
  session: ClientHttp2Session,
  id: string,
  argv: readonly string[],
  onEvent: (event: AttachEvent) => void,
): Promise<void> {
  const stream = open(session, 'Attach', 'application/connect+proto')
  const envelopes = envelopeReader()
  let acknowledged = 0
  let outcome: 'running' | 'ended' | FloorError = 'running'
  const take = (event: AttachEvent) => {
    onEvent(event)
    if (event.kind === 'failed') outcome = new FloorError(`${argv[0]} did not start: ${event.errno}.`)
    if (event.kind === 'exited')
      outcome =
        event.exitCode === 0 && event.signal === 0
          ? 'ended'
          : new FloorError(`${argv[0]} ended with code ${event.exitCode}, signal ${event.signal}.`)
    if (event.kind === 'output' && event.offset + event.data.length - acknowledged >= ackEveryBytes) {
      acknowledged = event.offset + event.data.length
      stream.write(envelope(ackRequest(acknowledged)))
    }
  }
  return new Promise((resolve, reject) => {
    stream.on('error', reject)
    stream.on('data', (chunk: Buffer) => {
      for (const { flags, message } of envelopes(chunk)) {
        if ((flags & endStream) === 0) take(readAttachResponse(message))
        else if (message.includes('"error"')) outcome = new FloorError(message.toString().slice(0, 300))
      }
      if (outcome === 'ended') stream.end()
    })
    stream.on('end', () => {
      if (outcome === 'ended') resolve()
      else reject(outcome === 'running' ? new FloorError('The stream ended before the exit.') : outcome)
    })
    stream.write(envelope(startRequest(id, argv)))
  })
}

function open(session: ClientHttp2Session, method: string, contentType: string): ClientHttp2Stream {
  return session.request({
    ':method': 'POST',
    ':path': `${service}/${method}`,
    'content-type': contentType,
    'connect-protocol-version': '1',
  })
}

function envelope(message: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

/** Cuts Connect's envelopes out of a byte stream; holds at most one message back. */
function envelopeReader(): (chunk: Buffer) => Generator<{ flags: number; message: Buffer }> {
  let parts: Buffer[] = []
  let heldBytes = 0
  let neededBytes = 5
  return function* read(chunk) {
    parts.push(chunk)
    heldBytes += chunk.length
    while (heldBytes >= neededBytes) {
      let held = parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts)
      while (held.length >= 5) {
        const length = held.readUInt32BE(1)
        if (length > maxMessageBytes) throw new FloorError(`The guest sent a message of ${length} bytes.`)
        if (held.length < 5 + length) break
        yield { flags: held[0] ?? 0, message: held.subarray(5, 5 + length) }
        held = held.subarray(5 + length)
      }
      parts = held.length > 0 ? [held] : []
      heldBytes = held.length
      neededBytes = held.length >= 5 ? 5 + held.readUInt32BE(1) : 5
    }
  }
}
