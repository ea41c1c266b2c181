/**
 * Counts what a guest sends as HTTP/2 without handling it: reads the nine bytes before each frame and looks away from
 * its payload. It stands in front of the HTTP/2 implementation, which would answer a flood of empty frames for as long
 * as it lasts.
 */
import { GuestLinkError } from './errors.ts'

/** What one piece of the stream held. */
export interface Metered {
  /** Frames that began in it. */
  readonly frames: number
  /** Those of them that carry no data of a call. */
  readonly controlFrames: number
}

export interface FrameMeter {
  /** Takes the next piece. Throws `frame_too_large`, `headers_too_large` or `server_push`. */
  push(chunk: Uint8Array): Metered
}

const frameHeadBytes = 9
const data = 0
const headers = 1
const pushPromise = 5
const continuation = 9

/** A meter for one direction of one session, from its first frame on. */
export function createFrameMeter(limits: { maxFrameBytes: number; maxHeaderBytes: number }): FrameMeter {
  const head = Buffer.alloc(frameHeadBytes)
  let headFilled = 0
  let payloadLeft = 0
  let headerBlockBytes = 0

  return {
    push(chunk) {
      let frames = 0
      let controlFrames = 0
      let at = 0
      while (at < chunk.length) {
        if (payloadLeft > 0) {
          const skipped = Math.min(payloadLeft, chunk.length - at)
          payloadLeft -= skipped
          at += skipped
          continue
        }
        while (headFilled < frameHeadBytes && at < chunk.length) head[headFilled++] = chunk[at++] ?? 0
        if (headFilled < frameHeadBytes) break
        headFilled = 0
        payloadLeft = head.readUIntBE(0, 3)
        frames += 1
        if (check(head[3] ?? 0, payloadLeft) !== data) controlFrames += 1
      }
      return { frames, controlFrames }
    },
  }

  function check(type: number, length: number): number {
    if (length > limits.maxFrameBytes) throw new GuestLinkError('frame_too_large', `${length} bytes`)
    if (type === pushPromise) throw new GuestLinkError('server_push', 'PUSH_PROMISE')
    if (type === headers) headerBlockBytes = 0
    if (type === headers || type === continuation) {
      headerBlockBytes += length
      if (headerBlockBytes > limits.maxHeaderBytes)
        throw new GuestLinkError('headers_too_large', `${headerBlockBytes} bytes`)
    }
    return type
  }
}
