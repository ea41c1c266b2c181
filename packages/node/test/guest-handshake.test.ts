import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GuestLinkError } from '../src/guest/errors.ts'
import {
  bootPrefix,
  createEchoReader,
  createEchoSkipper,
  goFrame,
  helloFrame,
  maxEchoBytes,
} from '../src/guest/handshake.ts'

const nonce = Buffer.alloc(16, 0xa5)
const secret = Buffer.from('0123456789abcdef')
const generous = 1 << 20

function echo(prefix: Uint8Array, body: Buffer, of: Buffer = nonce): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(body.length)
  return Buffer.concat([prefix, Buffer.from('E'), of, length, body])
}

/** Cuts bytes at the given places. */
function pieces(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  return [...places, bytes.length].map((end, index) => bytes.subarray(places[index - 1] ?? 0, end))
}

function readAll(prefixes: Uint8Array[], chunks: readonly Buffer[]) {
  const reader = createEchoReader(prefixes, nonce, generous)
  for (const [index, chunk] of chunks.entries()) {
    const found = reader.push(chunk)
    if (found !== undefined)
      return { ...found, rest: Buffer.concat([found.rest, ...chunks.slice(index + 1)]), index }
  }
  return undefined
}

describe('the frames the node sends', () => {
  test('HELLO and GO are the prefix, their letter and the nonce', () => {
    expect(bootPrefix.length).toBe(16)
    expect(helloFrame(bootPrefix, nonce).toString('latin1')).toBe(
      `SPACE-GUEST-v1\r\nH${nonce.toString('latin1')}`,
    )
    expect(goFrame(secret, nonce).toString('latin1')).toBe(`0123456789abcdefG${nonce.toString('latin1')}`)
  })
})

describe('the ECHO', () => {
  test('is found byte by byte, behind the rest of an earlier session', () => {
    const body = Buffer.from('an InfoResponse')
    const bytes = Buffer.concat([
      Buffer.from('rest of a session'),
      echo(secret, body),
      Buffer.from('session'),
    ])
    const found = readAll(
      [secret],
      [...bytes].map((byte) => Buffer.from([byte])),
    )
    expect(found?.body.toString()).toBe('an InfoResponse')
    expect(found?.rest.toString()).toBe('session')
  })

  test('is found however the stream is cut and whatever came before it', () => {
    const before = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.constant(bootPrefix),
      fc.constant(Buffer.concat([secret, Buffer.from('E'), nonce.subarray(0, 15), Buffer.from([0])])),
      fc.constant(echo(secret, Buffer.from('of another attempt'), Buffer.alloc(16, 1))),
    )
    fc.assert(
      fc.property(
        fc.array(before, { maxLength: 4 }),
        fc.uint8Array({ maxLength: 300 }),
        fc.uint8Array({ maxLength: 50 }),
        fc.constantFrom(secret, Buffer.from(bootPrefix)),
        fc.array(fc.nat(1000), { maxLength: 12 }),
        (garbage, body, session, prefix, cuts) => {
          const bytes = Buffer.concat([...garbage, echo(prefix, Buffer.from(body)), session])
          const found = readAll([secret, bootPrefix], pieces(bytes, cuts))
          expect(found?.prefix).toEqual(prefix)
          expect(found?.body).toEqual(Buffer.from(body))
          expect(found?.rest).toEqual(Buffer.from(session))
        },
      ),
    )
  })

  test('of another nonce, or under a prefix the agent cannot have, is not one', () => {
    const other = echo(secret, Buffer.from('body'), Buffer.alloc(16, 7))
    const foreign = echo(Buffer.alloc(16, 9), Buffer.from('body'))
    expect(readAll([secret], [other, foreign])).toBeUndefined()
  })

  test('may be 1 MiB and not a byte more', () => {
    const largest = echo(secret, Buffer.alloc(maxEchoBytes, 1))
    expect(readAll([secret], [largest])?.body.length).toBe(maxEchoBytes)
    const larger = Buffer.from(largest)
    larger.writeUInt32BE(maxEchoBytes + 1, 33)
    const reader = createEchoReader([secret], nonce, generous)
    expect(() => reader.push(larger.subarray(0, 37))).toThrow(
      expect.objectContaining({ kind: 'echo_too_large' }),
    )
  })

  test('must come within the bytes an earlier session can have left', () => {
    const reader = createEchoReader([secret], nonce, 1_000)
    reader.push(Buffer.alloc(1_000))
    expect(() => reader.push(Buffer.alloc(100))).toThrow(GuestLinkError)
  })
})

describe('repeated ECHO frames', () => {
  const repeated = echo(secret, Buffer.from('again'))
  const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])

  test('are taken out in front of the session, however the stream is cut', () => {
    fc.assert(
      fc.property(
        fc.nat(4),
        fc.array(fc.nat(1000), { maxLength: 12 }),
        fc.uint8Array({ maxLength: 80 }),
        (times, cuts, tail) => {
          const session = Buffer.concat([settings, tail])
          const bytes = Buffer.concat([...Array.from({ length: times }, () => repeated), session])
          const skipper = createEchoSkipper(secret, nonce)
          const passed = pieces(bytes, cuts).map((piece) => skipper.push(piece))
          expect(Buffer.concat(passed)).toEqual(session)
        },
      ),
    )
  })

  test('are left alone once the session has begun, where they are bytes of a program', () => {
    const skipper = createEchoSkipper(secret, nonce)
    expect(skipper.push(settings)).toEqual(settings)
    expect(skipper.push(repeated)).toEqual(repeated)
  })

  test('of an empty InfoResponse are taken out too', () => {
    const skipper = createEchoSkipper(secret, nonce)
    const passed = [...Buffer.concat([echo(secret, Buffer.alloc(0)), settings])].map((byte) =>
      skipper.push(Buffer.from([byte])),
    )
    expect(Buffer.concat(passed)).toEqual(settings)
  })
})
