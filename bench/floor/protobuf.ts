/**
 * As much of the protobuf wire format as a handful of small messages needs: varints and length-delimited fields. The
 * floor does not share the product's generated code, so that a slow codec there shows in the ratio.
 */
import { FloorError } from './errors.ts'

export interface Field {
  readonly number: number
  /** A varint (wire type 0), or the bytes of a string, bytes or message (wire type 2). */
  readonly value: number | Buffer
}

/** One varint field; zero is left out, as proto3 does. `value` is a safe integer that is not negative. */
export function varintField(number: number, value: number): Buffer {
  return value === 0 ? Buffer.alloc(0) : Buffer.concat([varint(number * 8), varint(value)])
}

/** One string, bytes or message field. */
export function bytesField(number: number, value: string | Buffer): Buffer {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes])
}

/** The fields of a message in the order they came; fixed32 and fixed64 fields are skipped. Throws on a torn message. */
export function* fieldsOf(message: Buffer): Generator<Field> {
  let at = 0
  const next = (): number => {
    let value = 0
    let scale = 1
    for (let count = 0; count < 10; count++) {
      const byte = message[at++]
      if (byte === undefined) throw new FloorError('A message of the guest ends inside a field.')
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
      scale *= 128
    }
    throw new FloorError('A number in a message of the guest is longer than ten bytes.')
  }
  while (at < message.length) {
    const key = next()
    const number = Math.floor(key / 8)
    const wireType = key % 8
    if (wireType === 0) yield { number, value: next() }
    else if (wireType === 2) {
      const length = next()
      if (at + length > message.length)
        throw new FloorError('A field of the guest is longer than its message.')
      yield { number, value: message.subarray(at, at + length) }
      at += length
    } else if (wireType === 1) at += 8
    else if (wireType === 5) at += 4
    else throw new FloorError(`A message of the guest has a field of unknown wire type ${wireType}.`)
  }
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  while (rest >= 0x80) {
    bytes.push((rest % 128) | 0x80)
    rest = Math.floor(rest / 128)
  }
  bytes.push(rest)
  return Buffer.from(bytes)
}
