/**
 * A segment: one file of a journal, named by its number and the position it starts at, so that a folder listing is the
 * index. Only the last one grows; a dropped one stays readable for who has it open.
 */
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { comparePositions, firstEpoch, type Position } from './position.ts'
import { maxRecordDataBytes, parseBlock, positionAfter, recordHeaderBytes } from './record.ts'

export interface Segment {
  readonly sequence: number
  readonly path: string
  readonly start: Position
  /** Bytes that are written and may be read; the file may be longer by what is being written. */
  bytes: number
  /** Places inside this file from which reading can start, oldest first: at most one for each `markEveryBytes`. */
  readonly marks: Mark[]
}

export interface Mark {
  readonly filePosition: number
  readonly position: Position
}

/** One read of a segment: at least one whole record of the longest kind. */
export const readBytes = maxRecordDataBytes + recordHeaderBytes
export const markEveryBytes = 256 * 1024

/** The segment that starts at this position. */
export function newSegment(folder: string, sequence: number, start: Position): Segment {
  const digits = (value: number, count: number) => value.toString().padStart(count, '0')
  const name = `${digits(sequence, 8)}-${start.epoch}-${digits(start.offset, 16)}-${start.n}.seg`
  return { sequence, path: join(folder, name), start, bytes: 0, marks: [] }
}

/** The segments of a folder, oldest first; files with other names are left alone. */
export async function listSegments(folder: string): Promise<Segment[]> {
  const segments: Segment[] = []
  for (const name of await readdir(folder)) {
    const match = /^(\d{8})-(\d{1,10})-(\d{16})-(\d{1,10})\.seg$/.exec(name)
    if (match === null) continue
    const start = { epoch: Number(match[2]), offset: Number(match[3]), n: Number(match[4]) }
    const path = join(folder, name)
    segments.push({ sequence: Number(match[1]), path, start, bytes: (await stat(path)).size, marks: [] })
  }
  return segments.sort((a, b) => a.sequence - b.sequence)
}

export interface Recovered {
  /** The position behind the last whole record. */
  readonly position: Position
  readonly endedAt: Position | undefined
}

/** Reads the last segment to its last whole record and cuts what a crash left behind it. */
export async function recoverSegment(segment: Segment, isEnd: (data: Buffer) => boolean): Promise<Recovered> {
  let position = segment.start
  let endedAt: Position | undefined
  let filePosition = 0
  const buffer = Buffer.allocUnsafeSlow(readBytes)
  await using file = await open(segment.path, 'r+')
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, filePosition)
    const block = parseBlock(buffer.subarray(0, bytesRead))
    for (const record of block.records) {
      noteMark(segment, filePosition + record.start, position)
      position = positionAfter(record)
      if (record.kind === 'event' && isEnd(record.data)) endedAt = position
    }
    filePosition += block.consumed
    if (block.corrupt || block.consumed === 0) break
  }
  if (filePosition < segment.bytes) await file.truncate(filePosition)
  segment.bytes = filePosition
  return { position, endedAt }
}

/** Remembers that a record starts here, when the last such place is far enough behind. */
export function noteMark(segment: Segment, filePosition: number, position: Position): void {
  const last = segment.marks.at(-1)
  if (filePosition - (last?.filePosition ?? 0) >= markEveryBytes)
    segment.marks.push({ filePosition, position })
}

/** The farthest known place of a segment at or before a position. */
export function placeBefore(segment: Segment, position: Position): number {
  const mark = segment.marks.findLast((candidate) => comparePositions(candidate.position, position) <= 0)
  return mark?.filePosition ?? 0
}

/** Where a journal without a record stands. */
export const origin: Position = { epoch: firstEpoch, offset: 0, n: 0 }
