/**
 * The frames two ends agree on a fresh session with, on a byte stream that may still carry bytes of an earlier one.
 *
 *   HELLO  prefix 'H' nonce                    node → agent
 *   ECHO   prefix 'E' nonce length InfoResponse    agent → node
 *   GO     prefix 'G' nonce                    node → agent
 *
 * Pure and incremental: a reader takes the stream in any pieces, byte by byte too, and holds back at most the bytes of
 * a frame's head that is not decided yet. The nonce is new for every attempt and 128 random bits, so nothing a program
 * in the guest prints is ever taken for the ECHO.
 */
import { GuestLinkError } from './errors.ts'

/** What announces a frame after a boot, until the node has given a secret in its place. */
export const bootPrefix: Uint8Array = Buffer.from('SPACE-GUEST-v1\r\n', 'latin1')

export const prefixBytes = 16
export const nonceBytes = 16
/** Largest InfoResponse an ECHO may carry. */
export const maxEchoBytes = 1_048_576

const lengthBytes = 4
const headBytes = prefixBytes + 1 + nonceBytes
const nothing = Buffer.alloc(0)

/** Announces the node and asks for an ECHO of this nonce. */
export function helloFrame(prefix: Uint8Array, nonce: Uint8Array): Buffer {
  return head(prefix, 'H', nonce)
}

/** Starts the session the ECHO of this nonce agreed on. */
export function goFrame(prefix: Uint8Array, nonce: Uint8Array): Buffer {
  return head(prefix, 'G', nonce)
}

function head(prefix: Uint8Array, type: 'H' | 'E' | 'G', nonce: Uint8Array): Buffer {
  return Buffer.concat([prefix, Buffer.from(type, 'latin1'), nonce])
}

/** An ECHO that was found: which prefix the agent has, what it said, and the bytes that followed. */
export interface Echo {
  readonly prefix: Uint8Array
  readonly body: Buffer
  readonly rest: Buffer
}

export interface EchoReader {
  /** Takes the next piece of the stream; answers the ECHO once it is whole. Throws `garbage` or `echo_too_large`. */
  push(chunk: Uint8Array): Echo | undefined
}

type Seeking =
  | { readonly kind: 'head'; readonly held: Buffer }
  | { readonly kind: 'length'; readonly prefix: Uint8Array; readonly held: Buffer }
  | {
      readonly kind: 'body'
      readonly prefix: Uint8Array
      readonly body: Buffer
      readonly filledBytes: number
    }

/** Drops everything up to an ECHO of `nonce` under one of the prefixes. */
export function createEchoReader(
  prefixes: readonly Uint8Array[],
  nonce: Uint8Array,
  maxDiscardedBytes: number,
): EchoReader {
  const heads = prefixes.map((prefix) => ({ prefix, pattern: head(prefix, 'E', nonce) }))
  let phase: Seeking = { kind: 'head', held: nothing }
  let discardedBytes = 0

  return {
    push(chunk) {
      let bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
      for (;;) {
        if (phase.kind === 'head') {
          const joined: Buffer = Buffer.concat([phase.held, bytes])
          const found = firstOf(joined, heads)
          if (found === undefined) {
            const held = Buffer.from(joined.subarray(Math.max(0, joined.length - (headBytes - 1))))
            discard(joined.length - held.length)
            phase = { kind: 'head', held }
            return undefined
          }
          discard(found.index)
          phase = { kind: 'length', prefix: found.prefix, held: nothing }
          bytes = joined.subarray(found.index + headBytes)
        } else if (phase.kind === 'length') {
          const { prefix, held } = phase
          const joined: Buffer = Buffer.concat([held, bytes.subarray(0, lengthBytes - held.length)])
          bytes = bytes.subarray(joined.length - held.length)
          if (joined.length < lengthBytes) {
            phase = { kind: 'length', prefix, held: joined }
            return undefined
          }
          phase = { kind: 'body', prefix, body: Buffer.alloc(bodyLength(joined)), filledBytes: 0 }
        } else {
          const { prefix, body, filledBytes } = phase
          const copied = bytes.copy(body, filledBytes)
          if (filledBytes + copied === body.length) return { prefix, body, rest: bytes.subarray(copied) }
          phase = { kind: 'body', prefix, body, filledBytes: filledBytes + copied }
          return undefined
        }
      }
    },
  }

  function discard(bytes: number): void {
    discardedBytes += bytes
    if (discardedBytes > maxDiscardedBytes)
      throw new GuestLinkError('garbage', `no echo within ${maxDiscardedBytes} bytes`)
  }
}

function firstOf(bytes: Buffer, heads: readonly { prefix: Uint8Array; pattern: Buffer }[]) {
  let first: { prefix: Uint8Array; index: number } | undefined
  for (const { prefix, pattern } of heads) {
    const index = bytes.indexOf(pattern)
    if (index >= 0 && (first === undefined || index < first.index)) first = { prefix, index }
  }
  return first
}

function bodyLength(field: Buffer): number {
  const length = field.readUInt32BE(0)
  if (length > maxEchoBytes) throw new GuestLinkError('echo_too_large', `${length} bytes`)
  return length
}

/** Removes repeated ECHO frames from the beginning of a session; from the first other byte on it passes everything. */
export interface EchoSkipper {
  /** The bytes of the session in this piece; none while a repeated ECHO is not decided or not over. */
  push(chunk: Buffer): Buffer
}

type Skipping =
  | { readonly kind: 'head'; readonly held: Buffer }
  | { readonly kind: 'length'; readonly held: Buffer }
  | { readonly kind: 'body'; readonly bytesLeft: number }
  | { readonly kind: 'through' }

/** The agent answers every HELLO that was on its way, in order, before the first byte of the session. */
export function createEchoSkipper(prefix: Uint8Array, nonce: Uint8Array): EchoSkipper {
  const pattern = head(prefix, 'E', nonce)
  let phase: Skipping = { kind: 'head', held: nothing }

  return {
    push(chunk) {
      let bytes = chunk
      while (bytes.length > 0 && phase.kind !== 'through') {
        if (phase.kind === 'body') {
          const skipped = Math.min(bytes.length, phase.bytesLeft)
          bytes = bytes.subarray(skipped)
          phase = bodyOf(phase.bytesLeft - skipped)
        } else if (phase.kind === 'length') {
          const missing = lengthBytes - phase.held.length
          const held: Buffer = Buffer.concat([phase.held, bytes.subarray(0, missing)])
          bytes = bytes.subarray(missing)
          phase = held.length === lengthBytes ? bodyOf(bodyLength(held)) : { kind: 'length', held }
        } else {
          const joined: Buffer = Buffer.concat([phase.held, bytes])
          const compared = Math.min(joined.length, pattern.length)
          if (joined.compare(pattern, 0, compared, 0, compared) !== 0) {
            phase = { kind: 'through' }
            return joined
          }
          bytes = joined.subarray(compared)
          phase =
            compared < pattern.length ? { kind: 'head', held: joined } : { kind: 'length', held: nothing }
        }
      }
      return bytes
    },
  }
}

function bodyOf(bytesLeft: number): Skipping {
  return bytesLeft === 0 ? { kind: 'head', held: nothing } : { kind: 'body', bytesLeft }
}
