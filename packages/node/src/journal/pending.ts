/** What was appended and is not written yet, in order; neighbours of one stream grow together into one record. */
import type { Position } from './position.ts'
import { encodeHeader, maxRecordDataBytes, type RecordKind, recordHeaderBytes } from './record.ts'

export interface PendingRecord {
  readonly kind: RecordKind
  readonly at: Position
  readonly chunks: Uint8Array[]
  bytes: number
}

/** Adds output to the last record when it fits there, else as a record of its own. */
export function addOutput(pending: PendingRecord[], kind: RecordKind, at: Position, data: Uint8Array): void {
  const last = pending.at(-1)
  if (last !== undefined && last.kind === kind && last.bytes + data.length <= maxRecordDataBytes) {
    last.chunks.push(data)
    last.bytes += data.length
    return
  }
  pending.push({ kind, at, chunks: [data], bytes: data.length })
}

/** The bytes of these records as they stand in a segment, in pieces. */
export function encodePending(pending: readonly PendingRecord[]): Uint8Array[] {
  return pending.flatMap((record) => [encodeHeader(record.kind, record.at, record.chunks), ...record.chunks])
}

/** The length of a record in a segment. */
export function encodedBytes(record: PendingRecord): number {
  return recordHeaderBytes + record.bytes
}

/** Takes the oldest records out, as many as fit in `maxBytes` and at least one. */
export function takeBatch(pending: PendingRecord[], maxBytes: number): PendingRecord[] {
  let bytes = 0
  const count = pending.findIndex((record, index) => {
    bytes += encodedBytes(record)
    return index > 0 && bytes > maxBytes
  })
  return pending.splice(0, count === -1 ? pending.length : count)
}
