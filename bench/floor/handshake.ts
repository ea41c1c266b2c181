/**
 * The node's half of the handshake in `guest/PROTOCOL.md`, for a guest whose prefix is still the one of a boot: HELLO
 * every 50 ms until its ECHO comes, then GO, then repeated echoes are dropped. What is left on the socket is HTTP/2.
 */
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { FloorError } from './errors.ts'

const prefix = Buffer.from('SPACE-GUEST-v1\r\n')
const helloEveryMs = 50
const maxEchoBytes = 1_048_576
const headBytes = prefix.length + 1 + 16 + 4

/** Agrees on a session over `socket` and answers the `InfoResponse` of the echo; the socket is left paused. */
export function shakeHands(socket: Socket, timeoutMs: number): Promise<Buffer> {
  const nonce = randomBytes(16)
  const echoStart = Buffer.concat([prefix, Buffer.from('E'), nonce])
  const hello = Buffer.concat([prefix, Buffer.from('H'), nonce])
  const go = Buffer.concat([prefix, Buffer.from('G'), nonce])
  let held: Buffer = Buffer.alloc(0)
  let info: Buffer | undefined

  return new Promise((resolve, reject) => {
    const timer = setInterval(() => socket.write(hello), helloEveryMs)
    const deadline = setTimeout(
      () => finish(new FloorError(`The guest did not answer within ${timeoutMs} ms.`)),
      timeoutMs,
    )
    const onClose = () => finish(new FloorError('The guest channel closed during the handshake.'))
    const finish = (failure?: Error) => {
      clearInterval(timer)
      clearTimeout(deadline)
      socket.off('data', onData).off('close', onClose).off('error', onClose).pause()
      if (failure) reject(failure)
      else if (info) resolve(info)
    }
    const onData = (chunk: Buffer) => {
      held = Buffer.concat([held, chunk])
      for (;;) {
        const echo = takeEcho()
        if (echo === 'incomplete') return
        if (echo === 'none') break
        if (info) continue
        info = echo
        clearInterval(timer)
        socket.write(go)
      }
      if (!info || held.length === 0) return
      finish()
      socket.unshift(held)
    }
    const takeEcho = (): Buffer | 'incomplete' | 'none' => {
      const at = info ? (startsLike(held, echoStart) ? 0 : -1) : held.indexOf(echoStart)
      if (at < 0) {
        if (!info) held = held.subarray(Math.max(0, held.length - echoStart.length))
        return info ? 'none' : 'incomplete'
      }
      if (held.length < at + headBytes) return info && held.length === 0 ? 'none' : 'incomplete'
      const length = held.readUInt32BE(at + headBytes - 4)
      if (length > maxEchoBytes) throw new FloorError(`The guest's echo is ${length} bytes long.`)
      const end = at + headBytes + length
      if (held.length < end) return 'incomplete'
      const message = Buffer.from(held.subarray(at + headBytes, end))
      held = held.subarray(end)
      return message
    }
    socket.on('data', onData).on('close', onClose).on('error', onClose)
    socket.write(hello)
    socket.resume()
  })
}

function startsLike(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length)
  return bytes.subarray(0, length).equals(start.subarray(0, length))
}
