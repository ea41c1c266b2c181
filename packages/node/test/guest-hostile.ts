import { randomBytes } from 'node:crypto'
import { connect, createServer, type Socket } from 'node:net'
import { create, toBinary } from '@bufbuild/protobuf'
import { InfoResponseSchema } from '@space/contract/guest'

/** The prefix a hostile agent answers to: not the boot prefix, so that no secret is given first. */
export const hostilePrefix: Buffer = Buffer.from('hostile--guest!!')

export interface HostileGuest {
  readonly connect: () => Promise<Socket>
  close(): Promise<void>
}

/** What a hostile agent does: its own ECHO, and what it sends once a session began. */
export interface HostileScript {
  readonly echo?: (nonce: Buffer) => Buffer
  readonly session?: (socket: Socket) => void
}

/** An ECHO as a well-behaved agent sends it. */
export function goodEcho(nonce: Buffer): Buffer {
  const body = toBinary(
    InfoResponseSchema,
    create(InfoResponseSchema, { protocolVersion: 1, bootId: 'hostile' }),
  )
  const length = Buffer.alloc(4)
  length.writeUInt32BE(body.length)
  return Buffer.concat([hostilePrefix, Buffer.from('E'), nonce, length, body])
}

/** A peer on a real socket that keeps to the handshake and then does what it wants. */
export async function hostileGuest(script: HostileScript): Promise<HostileGuest> {
  const path = `\0space-hostile-${randomBytes(8).toString('hex')}`
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    let begun = false
    socket.on('data', (chunk: Buffer) => {
      for (let at = 0; !begun; ) {
        const found = chunk.indexOf(hostilePrefix, at)
        if (found < 0) return
        const nonce = chunk.subarray(found + 17, found + 33)
        if (chunk[found + 16] === 0x47) {
          begun = true
          script.session?.(socket)
        } else if (at === 0) socket.write((script.echo ?? goodEcho)(nonce))
        at = found + 33
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return {
    connect: () =>
      new Promise((resolve, reject) => {
        const socket = connect({ path })
        socket.once('error', reject)
        socket.once('connect', () => resolve(socket))
      }),
    close() {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
