/**
 * One record of a segment, little endian:
 *
 *   0  u8   0x4a          4  u32 length of data     16 u32 epoch
 *   1  u8   kind          8  u64 offset             20 u32 CRC-32 of bytes 0..19 and the data
 *   2  u16  n             24 data
 *
 * An output record holds bytes of one stream from `offset` on, n = 0. An event record holds JSON and is the nth event at
 * `offset`, counted from 1.
 */
import { crc32 } from 'node:zlib'
import type { Position } from './position.ts'

export const recordHeaderBytes = 24
/** Longest data of one record: one frame of the guest channel. */
export const maxRecordDataBytes = 256 * 1024

const magic = 0x4a

export type OutputStream = 'stdout' | 'stderr' | 'pty'
export type RecordKind = OutputStream | 'event'

const kinds = ['stdout', 'stderr', 'pty', 'event'] as const satisfies readonly RecordKind[]

export interface JournalRecord {
  readonly kind: RecordKind
  readonly epoch: number
  readonly offset: number
  readonly n: number
  /** A view of the buffer that was parsed. */
  readonly data: Buffer
}

/** Makes a record's header for data that is written behind it in pieces. */
export function encodeHeader(kind: RecordKind, at: Position, chunks: readonly Uint8Array[]): Buffer {
  const header = Buffer.allocUnsafe(recordHeaderBytes)
  header[0] = magic
  header[1] = kinds.indexOf(kind)
  header.writeUInt16LE(at.n, 2)
  header.writeUInt32LE(
    chunks.reduce((sum, chunk) => sum + chunk.length, 0),
    4,
  )
  header.writeUInt32LE(at.offset >>> 0, 8)
  header.writeUInt32LE(Math.floor(at.offset / 2 ** 32), 12)
  header.writeUInt32LE(at.epoch, 16)
  let crc = crc32(header.subarray(0, 20))
  for (const chunk of chunks) crc = crc32(chunk, crc)
  header.writeUInt32LE(crc, 20)
  return header
}

/** The whole records at the front of a block, and what comes behind them. */
export interface Block {
  readonly records: readonly PlacedRecord[]
  /** Bytes of the whole records. */
  readonly consumed: number
  /** True when something no writer wrote stands behind them; false for the beginning of a record, or nothing. */
  readonly corrupt: boolean
}

export interface PlacedRecord extends JournalRecord {
  /** Where the record starts in the block. */
  readonly start: number
}

/** Parses records until one is incomplete or does not hold. */
export function parseBlock(block: Buffer): Block {
  const records: PlacedRecord[] = []
  let start = 0
  for (;;) {
    const record = parseRecord(block, start)
    if (typeof record === 'string') return { records, consumed: start, corrupt: record === 'corrupt' }
    records.push(record)
    start += recordHeaderBytes + record.data.length
  }
}

function parseRecord(block: Buffer, start: number): PlacedRecord | 'incomplete' | 'corrupt' {
  if (block.length - start < recordHeaderBytes) return 'incomplete'
  const kind = kinds[block.readUInt8(start + 1)]
  const length = block.readUInt32LE(start + 4)
  if (block[start] !== magic || kind === undefined || length > maxRecordDataBytes) return 'corrupt'
  const dataStart = start + recordHeaderBytes
  if (dataStart + length > block.length) return 'incomplete'
  const data = block.subarray(dataStart, dataStart + length)
  if (crc32(data, crc32(block.subarray(start, start + 20))) !== block.readUInt32LE(start + 20))
    return 'corrupt'
  const offset = block.readUInt32LE(start + 12) * 2 ** 32 + block.readUInt32LE(start + 8)
  return {
    start,
    kind,
    epoch: block.readUInt32LE(start + 16),
    offset,
    n: block.readUInt16LE(start + 2),
    data,
  }
}

/** The position behind a record. */
export function positionAfter(record: JournalRecord): Position {
  return record.kind === 'event'
    ? { epoch: record.epoch, offset: record.offset, n: record.n }
    : { epoch: record.epoch, offset: record.offset + record.data.length, n: 0 }
}
