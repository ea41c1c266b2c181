import { gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { unpackLegacyLz4 } from '../src/images/lz4.ts'
import { extractVmlinux, findPayload, hasPvhEntry } from '../src/images/vmlinux.ts'

const packings = {
  gzip: (bytes: Buffer) => gzipSync(bytes),
  zstd: (bytes: Buffer) => zstdCompressSync(bytes),
  'legacy LZ4': (bytes: Buffer) => packLz4(bytes),
  nothing: (bytes: Buffer) => bytes,
}

describe('a kernel', () => {
  for (const [name, pack] of Object.entries(packings))
    test(`packed with ${name} comes out byte for byte`, async () => {
      const kernel = elfWithPvh()
      expect((await extractVmlinux(bzImage(pack(kernel)))).equals(kernel)).toBe(true)
    })

  test('without a PVH entry is refused, with what to do', async () => {
    const refusal = extractVmlinux(bzImage(gzipSync(elf(note('Xen\0', 1)))))
    await expect(refusal).rejects.toMatchObject({
      code: 'kernel_unusable',
      remedy: expect.stringContaining('SPACE_KERNEL'),
    })
  })

  test('that is no bzImage, or is cut short, is refused', () => {
    expect(() => findPayload(Buffer.alloc(4096))).toThrow(/no bzImage/)
    const whole = bzImage(gzipSync(elfWithPvh()))
    expect(() => findPayload(whole.subarray(0, whole.length - 8))).toThrow(/outside the file/)
  })

  test('of random bytes never counts as bootable and never throws', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (tail) => {
        expect(hasPvhEntry(Buffer.concat([Buffer.from('7f454c4602', 'hex'), tail]))).toBe(false)
      }),
    )
  })
})

describe('LZ4', () => {
  test('unpacks what was packed, copies that overlap themselves too', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 40 }), fc.nat(60))), (runs) => {
        const bytes = Buffer.concat(runs.flatMap(([run, times]) => Array<Uint8Array>(times + 1).fill(run)))
        expect(unpackLegacyLz4(packLz4(bytes), 1 << 20).equals(bytes)).toBe(true)
      }),
    )
  })

  test('damage is an error, never a wrong answer or a read outside', () => {
    const packed = packLz4(Buffer.from('abcabcabcabcabcabcabc'.repeat(20)))
    for (let cut = 5; cut < packed.length; cut++)
      expect(() => unpackLegacyLz4(packed.subarray(0, cut), 1 << 20)).toThrow(/damaged/)
    const badOffset = Buffer.concat([
      Buffer.from([2, 0x21, 0x4c, 0x18, 4, 0, 0, 0]),
      Buffer.from([0x10, 65, 9, 0]),
    ])
    expect(() => unpackLegacyLz4(badOffset, 1 << 20)).toThrow(/copy is out of bounds/)
  })

  test('more than is allowed is refused', () => {
    expect(() => unpackLegacyLz4(packLz4(Buffer.alloc(1000)), 999)).toThrow(/larger than allowed/)
  })
})

/** A small packer: the nearest earlier match of four bytes, greedy. */
function packLz4(bytes: Buffer): Buffer {
  const out: number[] = []
  const sequence = (literals: Buffer, match?: { offset: number; length: number }) => {
    const matchLength = match === undefined ? 0 : match.length - 4
    out.push((Math.min(literals.length, 15) << 4) | Math.min(matchLength, 15))
    extend(out, literals.length)
    out.push(...literals)
    if (match === undefined) return
    out.push(match.offset & 255, match.offset >> 8)
    extend(out, matchLength)
  }
  let from = 0
  let at = 0
  while (at + 4 < bytes.length) {
    const earlier = at === 0 ? -1 : bytes.lastIndexOf(bytes.subarray(at, at + 4), at - 1)
    if (earlier < 0 || at - earlier > 65535) {
      at++
      continue
    }
    let matched = 4
    while (at + matched < bytes.length - 1 && bytes[at + matched] === bytes[earlier + matched]) matched++
    sequence(bytes.subarray(from, at), { offset: at - earlier, length: matched })
    at += matched
    from = at
  }
  sequence(bytes.subarray(from))
  const header = Buffer.alloc(8)
  header.writeUInt32LE(0x184c2102, 0)
  header.writeUInt32LE(out.length, 4)
  return Buffer.concat([header, Buffer.from(out)])
}

function extend(out: number[], value: number): void {
  if (value < 15) return
  let rest = value - 15
  while (rest >= 255) {
    out.push(255)
    rest -= 255
  }
  out.push(rest)
}

function bzImage(payload: Buffer): Buffer {
  const header = Buffer.alloc(1024)
  header[0x1f1] = 1
  header.write('HdrS', 0x202, 'latin1')
  header.writeUInt16LE(0x20f, 0x206)
  header.writeUInt32LE(0, 0x248)
  header.writeUInt32LE(payload.length + 4, 0x24c)
  return Buffer.concat([header, payload, Buffer.alloc(4)])
}

function elfWithPvh(): Buffer {
  return elf(Buffer.concat([note('GNU\0', 3), note('Xen\0', 18)]), Buffer.from('code and data '.repeat(5000)))
}

function elf(notes: Buffer, rest: Buffer = Buffer.alloc(0)): Buffer {
  const header = Buffer.alloc(64)
  header.write('7f454c4602', 0, 'hex')
  header.writeBigUInt64LE(64n, 32)
  header.writeUInt16LE(56, 54)
  header.writeUInt16LE(1, 56)
  const segment = Buffer.alloc(56)
  segment.writeUInt32LE(4, 0)
  segment.writeBigUInt64LE(120n, 8)
  segment.writeBigUInt64LE(BigInt(notes.length), 32)
  return Buffer.concat([header, segment, notes, rest])
}

function note(name: string, type: number): Buffer {
  const header = Buffer.alloc(12)
  header.writeUInt32LE(name.length, 0)
  header.writeUInt32LE(8, 4)
  header.writeUInt32LE(type, 8)
  return Buffer.concat([header, Buffer.from(name, 'latin1'), Buffer.alloc(8)])
}
