import type { ClientHttp2Stream } from 'node:http2'
import { GuestLinkError } from './errors.ts'

/** How much of a response waits here for its reader before the stream is paused. */
const maxWaitingBytes = 64 * 1024

/**
 * The bytes of a response to its end. Node's own iteration gives up, with bytes still unread, when the peer closes the
 * stream while the request is open: what an agent does that has told the last there is to tell of a process, since
 * nothing the node could still send matters. Here a response ends at its end. Reads from the call on, bounded.
 */
export function responseBytes(stream: ClientHttp2Stream): AsyncGenerator<Uint8Array, undefined> {
  const waiting: Buffer[] = []
  let waitingBytes = 0
  let over = false
  let failure: Error | undefined
  let wake = Promise.withResolvers<void>()

  stream.on('data', (chunk: Buffer) => {
    waiting.push(chunk)
    waitingBytes += chunk.length
    if (waitingBytes > maxWaitingBytes) stream.pause()
    wake.resolve()
  })
  stream.once('end', () => end())
  stream.once('error', end)
  stream.once('close', cut)
  if (stream.destroyed) cut()

  return read()

  function end(error?: Error): void {
    over = true
    failure ??= error
    wake.resolve()
  }

  function cut(): void {
    if (!over) end(new GuestLinkError('lost', 'the stream closed before its end'))
  }

  async function* read(): AsyncGenerator<Uint8Array, undefined> {
    for (;;) {
      const chunk = waiting.shift()
      if (chunk !== undefined) {
        waitingBytes -= chunk.length
        if (stream.isPaused() && waitingBytes === 0) stream.resume()
        yield chunk
      } else if (failure !== undefined) throw failure
      else if (over) return
      else {
        await wake.promise
        wake = Promise.withResolvers<void>()
      }
    }
  }
}
