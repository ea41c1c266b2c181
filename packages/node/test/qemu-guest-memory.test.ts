import { describe, expect, it } from 'vitest'
import { parseMaps } from '../src/host/procfs.ts'
import { ownRuns, pageBytes } from '../src/machines/qemu/guest-memory.ts'

const absent = 0n
const ofFile = (1n << 63n) | (1n << 61n) | 0x1234n
const own = (1n << 63n) | 0x5678n
const swapped = 1n << 62n

function entries(...pages: bigint[]): Buffer {
  const buffer = Buffer.alloc(pages.length * 8)
  for (const [index, page] of pages.entries()) buffer.writeBigUInt64LE(page, index * 8)
  return buffer
}

describe('pages of its own', () => {
  it('are those present and not of the file, and those swapped out, joined into runs', () => {
    const runs = ownRuns(entries(own, own, ofFile, absent, swapped, own, absent, own), {
      address: 0x10000,
      offset: 8192,
    })
    expect(runs).toEqual([
      { address: 0x10000, offset: 8192, bytes: 2 * pageBytes },
      { address: 0x10000 + 4 * pageBytes, offset: 8192 + 4 * pageBytes, bytes: 2 * pageBytes },
      { address: 0x10000 + 7 * pageBytes, offset: 8192 + 7 * pageBytes, bytes: pageBytes },
    ])
  })

  it('are none in memory that is as it was mapped', () => {
    expect(ownRuns(entries(absent, ofFile, ofFile), { address: 0, offset: 0 })).toEqual([])
  })
})

describe('mappings of guest memory', () => {
  it('are the private writable ones of that very file', () => {
    const text = [
      '7f0000000000-7f0010000000 rw-p 00000000 00:01 1037                       /memfd:space-memory (deleted)',
      '7f0010000000-7f0040000000 rw-p 10000000 00:01 1037                       /memfd:space-memory (deleted)',
      '7f1000000000-7f1000001000 r--p 00000000 00:01 1037                       /memfd:space-memory (deleted)',
      '7f2000000000-7f2000001000 rw-s 00000000 00:01 1037                       /memfd:space-memory (deleted)',
      '7f3000000000-7f3000001000 rw-p 00000000 00:01 1038                       /memfd:space-memory (deleted)',
      '7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]',
      'not a line of maps',
    ].join('\n')
    expect(parseMaps(text, 1037)).toMatchObject([
      { start: 0x7f0000000000, end: 0x7f0010000000, fileOffset: 0 },
      { start: 0x7f0010000000, end: 0x7f0040000000, fileOffset: 0x10000000 },
    ])
  })
})
