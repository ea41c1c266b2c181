import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { dataExtents } from '../host/descriptors.ts'

const chunkBytes = 64 * 1024
const readBytes = 16 * chunkBytes
const zeroChunk = Buffer.alloc(chunkBytes)

/**
 * The digest of a sparse image: of its size, and of each 64 KiB chunk that is not all zero with its place. How the
 * zeros are stored (a hole or written) makes no difference. `sha256:<64 hex>`; `salt` is hashed first.
 */
export async function imageDigest(path: string, salt: string): Promise<string> {
  const hash = createHash('sha256').update(`${salt}\n`)
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    hash.update(`${size}\n`)
    const buffer = Buffer.alloc(readBytes)
    let next = 0
    for (const extent of dataExtents(file.fd, size)) {
      // Whole chunks, each once, though an extent may begin or end within one.
      let at = Math.max(next, Math.floor(extent.start / chunkBytes) * chunkBytes)
      const end = Math.min(size, Math.ceil(extent.end / chunkBytes) * chunkBytes)
      while (at < end) {
        const wanted = Math.min(readBytes, end - at)
        await readFully(file, buffer.subarray(0, wanted), at)
        for (let from = 0; from < wanted; from += chunkBytes) {
          const chunk = buffer.subarray(from, Math.min(from + chunkBytes, wanted))
          if (!chunk.equals(zeroChunk.subarray(0, chunk.length))) hash.update(`${at + from}\n`).update(chunk)
        }
        at += wanted
      }
      next = Math.max(next, end)
    }
  } finally {
    await file.close()
  }
  return `sha256:${hash.digest('hex')}`
}

async function readFully(file: FileHandle, into: Buffer, position: number): Promise<void> {
  let done = 0
  while (done < into.length) {
    const { bytesRead } = await file.read(into, done, into.length - done, position + done)
    if (bytesRead === 0) {
      into.fill(0, done)
      return
    }
    done += bytesRead
  }
}
