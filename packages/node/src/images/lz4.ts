import { SetUpError } from './errors.ts'

/**
 * The "legacy" LZ4 framing the kernel's build uses: a magic number, then blocks of a length and that many bytes, each
 * unpacking to 8 MiB (the last to less). Node.js has no LZ4, and this is all of it.
 */
const legacyMagic = 0x184c2102
const maxBlockBytes = 8 * 1024 * 1024

/** Whether the bytes begin like an LZ4 stream in the legacy framing. */
export function isLegacyLz4(bytes: Buffer): boolean {
  return bytes.length >= 4 && bytes.readUInt32LE(0) === legacyMagic
}

/** Unpacks a legacy LZ4 stream; refuses one that is damaged or larger than `maxBytes`. */
export function unpackLegacyLz4(bytes: Buffer, maxBytes: number): Buffer {
  if (!isLegacyLz4(bytes)) throw damaged('no magic number')
  const blocks: Buffer[] = []
  let total = 0
  let at = 4
  while (at < bytes.length) {
    if (at + 4 > bytes.length) throw damaged('a block length is cut short')
    const length = bytes.readUInt32LE(at)
    at += 4
    if (length === legacyMagic) continue
    if (length === 0) break
    if (at + length > bytes.length) throw damaged('a block is cut short')
    const block = unpackBlock(bytes.subarray(at, at + length))
    at += length
    total += block.length
    if (total > maxBytes) throw damaged('larger than allowed')
    blocks.push(block)
  }
  return Buffer.concat(blocks, total)
}

/** One block: runs of literals, each followed by a copy of bytes already unpacked. */
function unpackBlock(input: Buffer): Buffer {
  const output = Buffer.allocUnsafe(maxBlockBytes)
  let from = 0
  let to = 0
  const extend = (length: number): number => {
    if (length < 15) return length
    for (;;) {
      const more = input[from++]
      if (more === undefined) throw damaged('a length is cut short')
      length += more
      if (more < 255) return length
    }
  }
  while (from < input.length) {
    const token = input[from++] ?? 0
    const literals = extend(token >> 4)
    if (from + literals > input.length || to + literals > maxBlockBytes)
      throw damaged('literals out of bounds')
    input.copy(output, to, from, from + literals)
    from += literals
    to += literals
    if (from >= input.length) break
    if (from + 2 > input.length) throw damaged('an offset is cut short')
    const offset = input.readUInt16LE(from)
    from += 2
    const length = extend(token & 15) + 4
    if (offset === 0 || offset > to || to + length > maxBlockBytes) throw damaged('a copy is out of bounds')
    for (let done = 0; done < length; ) {
      const step = Math.min(offset + done, length - done)
      output.copyWithin(to + done, to - offset, to - offset + step)
      done += step
    }
    to += length
  }
  return Buffer.from(output.subarray(0, to))
}

function damaged(what: string): SetUpError {
  return new SetUpError(
    'kernel_unusable',
    `The LZ4 payload is damaged: ${what}.`,
    'Fetch the kernel package again.',
  )
}
