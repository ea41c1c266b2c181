import { read, write } from 'node:fs'
import { promisify } from 'node:util'
import { dataExtents, type Extent } from './descriptors.ts'
import { HostError } from './host-error.ts'

const readAt = promisify(read)
const writeAt = promisify(write)

/** Bytes one step moves on a thread of the pool: large enough to be cheap, small enough that an abort is seen soon. */
const chunkBytes = 4 << 20

const pageBytes = 4096
const zeroPage = Buffer.alloc(pageBytes)

/**
 * Copies the parts of a file that hold data to the same offsets of another, off the main thread; holes stay holes.
 * `to` must have its full size already. With `sparse`, `to` is all zeroes and pages of zeroes are left out too.
 * Returns the bytes copied.
 */
export async function copyData(
  from: number,
  to: number,
  sizeBytes: number,
  options: { readonly sparse?: boolean; readonly signal?: AbortSignal } = {},
): Promise<number> {
  const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, sizeBytes))
  let copied = 0
  for (const extent of dataExtents(from, sizeBytes)) {
    for (let at = extent.start; at < extent.end; ) {
      options.signal?.throwIfAborted()
      const wanted = Math.min(buffer.length, extent.end - at)
      const { bytesRead } = await readAt(from, buffer, 0, wanted, at)
      if (bytesRead === 0) throw new HostError('copy', 'EIO', 'the source ended early')
      const pieces = options.sparse === true ? dataPieces(buffer, bytesRead) : [{ start: 0, end: bytesRead }]
      for (const { start, end } of pieces) {
        await writeFully(to, buffer.subarray(start, end), at + start)
        copied += end - start
      }
      at += bytesRead
    }
  }
  return copied
}

/** The parts of a buffer that are not pages of zeroes. */
function dataPieces(buffer: Buffer, length: number): Extent[] {
  const pieces: Extent[] = []
  let start = -1
  for (let at = 0; at < length; at += pageBytes) {
    const end = Math.min(length, at + pageBytes)
    const isZero = buffer.compare(zeroPage, 0, end - at, at, end) === 0
    if (!isZero && start < 0) start = at
    if (isZero && start >= 0) {
      pieces.push({ start, end: at })
      start = -1
    }
  }
  if (start >= 0) pieces.push({ start, end: length })
  return pieces
}

async function writeFully(fd: number, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await writeAt(fd, bytes, done, bytes.length - done, position + done)
    done += bytesWritten
  }
}
