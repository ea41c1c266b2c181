import { read, write } from 'node:fs'
import { promisify } from 'node:util'
import { dataExtents } from './descriptors.ts'
import { HostError } from './host-error.ts'

const readAt = promisify(read)
const writeAt = promisify(write)

/** Bytes one step moves on a thread of the pool: large enough to be cheap, small enough that an abort is seen soon. */
const chunkBytes = 4 << 20

/**
 * Copies the parts of a file that hold data to the same offsets of another, off the main thread; holes stay holes.
 * `to` must have its full size already. Returns the bytes copied.
 */
export async function copyData(
  from: number,
  to: number,
  sizeBytes: number,
  signal?: AbortSignal,
): Promise<number> {
  const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, sizeBytes))
  let copied = 0
  for (const extent of dataExtents(from, sizeBytes)) {
    for (let at = extent.start; at < extent.end; ) {
      signal?.throwIfAborted()
      const wanted = Math.min(buffer.length, extent.end - at)
      const { bytesRead } = await readAt(from, buffer, 0, wanted, at)
      if (bytesRead === 0) throw new HostError('copy', 'EIO', 'the source ended early')
      await writeFully(to, buffer, bytesRead, at)
      at += bytesRead
      copied += bytesRead
    }
  }
  return copied
}

async function writeFully(fd: number, buffer: Buffer, length: number, position: number): Promise<void> {
  let done = 0
  while (done < length) {
    const { bytesWritten } = await writeAt(fd, buffer, done, length - done, position + done)
    done += bytesWritten
  }
}
