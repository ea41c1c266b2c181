/**
 * The pages of guest memory that belong to this machine alone, found in the kernel's page map of the VMM: present and
 * not of the mapped file, or swapped out. Everything else still is as in the memory file it was mapped from.
 */
import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import { type FileHandle, open, readFile } from 'node:fs/promises'
import { setImmediate as breathe } from 'node:timers/promises'
import { type MappedRange, parseMaps } from '../../host/procfs.ts'
import { MachineError } from '../machine-error.ts'

export const pageBytes = 4096
const entryBytes = 8
/** Page map entries read at a time: 128 MiB of guest memory. */
const entriesAtOnce = 32_768
/** How long copying may occupy the main thread before others get their turn. */
const sliceMs = 2
/** Most bytes copied in one step. */
const copyBytes = 256 << 10

// High words of a page map entry.
const present = 0x8000_0000
const swapped = 0x4000_0000
const ofFile = 0x2000_0000

export interface PageRun {
  /** Address in the VMM. */
  readonly address: number
  /** Offset in guest memory. */
  readonly offset: number
  readonly bytes: number
}

/** Runs of own pages in a piece of the page map; `at` is where the piece begins. */
export function ownRuns(entries: Buffer, at: { address: number; offset: number }): PageRun[] {
  const words = new Uint32Array(entries.buffer, entries.byteOffset, Math.floor(entries.length / 4))
  const runs: PageRun[] = []
  let start = -1
  const pages = words.length / 2
  for (let page = 0; page <= pages; page += 1) {
    const own = page < pages && isOwn(words[2 * page + 1] ?? 0)
    if (own && start < 0) start = page
    if (own || start < 0) continue
    const skipped = start * pageBytes
    runs.push({
      address: at.address + skipped,
      offset: at.offset + skipped,
      bytes: (page - start) * pageBytes,
    })
    start = -1
  }
  return runs
}

function isOwn(high: number): boolean {
  return (high & swapped) !== 0 || ((high & present) !== 0 && (high & ofFile) === 0)
}

/** Where a VMM has guest memory mapped, by the inode of its memory file. Bounded by the machine's size. */
export async function guestRanges(pid: number, inode: number, sizeBytes: number): Promise<MappedRange[]> {
  const ranges = parseMaps(await readFile(`/proc/${pid}/maps`, 'utf8'), inode)
  const total = ranges.reduce((sum, { start, end }) => sum + end - start, 0)
  const inside = ranges.every(({ start, end, fileOffset }) => fileOffset + end - start <= sizeBytes)
  if (total !== sizeBytes || !inside)
    throw new MachineError(
      'vmm_protocol',
      `${total} bytes of guest memory are mapped instead of ${sizeBytes}`,
    )
  return ranges
}

export interface CopyOwnOptions {
  readonly pid: number
  readonly ranges: readonly MappedRange[]
  /** File that holds what the machine was mapped from. */
  readonly to: number
  readonly signal?: AbortSignal
}

/** Writes the own pages of a stopped machine to their place in a file. Answers how many bytes were its own. */
export async function copyOwnPages(options: CopyOwnOptions): Promise<number> {
  const memory = openSync(`/proc/${options.pid}/mem`, 'r')
  const pageMap = await open(`/proc/${options.pid}/pagemap`, 'r')
  const copier = new PageCopier(memory, options.to)
  try {
    let own = 0
    for (const range of options.ranges)
      for await (const run of runsOf(pageMap, range)) {
        options.signal?.throwIfAborted()
        await copier.copy(run)
        own += run.bytes
      }
    return own
  } finally {
    closeSync(memory)
    await pageMap.close()
  }
}

async function* runsOf(pageMap: FileHandle, range: MappedRange): AsyncGenerator<PageRun> {
  const buffer = Buffer.alloc(entriesAtOnce * entryBytes)
  const pages = (range.end - range.start) / pageBytes
  for (let first = 0; first < pages; first += entriesAtOnce) {
    const wanted = Math.min(entriesAtOnce, pages - first) * entryBytes
    const position = (range.start / pageBytes + first) * entryBytes
    const { bytesRead } = await pageMap.read(buffer, 0, wanted, position)
    if (bytesRead !== wanted) throw new MachineError('vmm_gone', 'the page map ended early')
    const skipped = first * pageBytes
    yield* ownRuns(buffer.subarray(0, wanted), {
      address: range.start + skipped,
      offset: range.fileOffset + skipped,
    })
  }
}

/** Copies runs synchronously, since each is a few microseconds, and gives way to others every `sliceMs`. */
class PageCopier {
  readonly #memory: number
  readonly #to: number
  readonly #buffer = Buffer.allocUnsafe(copyBytes)
  #sliceStart = performance.now()

  constructor(memory: number, to: number) {
    this.#memory = memory
    this.#to = to
  }

  async copy({ address, offset, bytes }: PageRun): Promise<void> {
    for (let done = 0; done < bytes; ) {
      if (performance.now() - this.#sliceStart > sliceMs) {
        await breathe()
        this.#sliceStart = performance.now()
      }
      const length = readSync(
        this.#memory,
        this.#buffer,
        0,
        Math.min(copyBytes, bytes - done),
        address + done,
      )
      if (length === 0) throw new MachineError('vmm_gone', 'guest memory could not be read')
      writeSync(this.#to, this.#buffer, 0, length, offset + done)
      done += length
    }
  }
}
