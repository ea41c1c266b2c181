/** The thread of digest.ts. Position and length of a chunk go in before its bytes, so that moved data is told. */
import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'

const chunkBytes = 64 * 1024
const zeros = Buffer.alloc(chunkBytes)

function digest(path: string): string {
  const hash = createHash('sha256')
  const buffer = Buffer.alloc(chunkBytes)
  const file = openSync(path, 'r')
  try {
    for (let position = 0; ; position += chunkBytes) {
      const length = readSync(file, buffer, 0, chunkBytes, position)
      if (length === 0) return hash.digest('hex')
      if (buffer.compare(zeros, 0, length, 0, length) !== 0) {
        hash.update(`${position}:${length}\n`).update(buffer.subarray(0, length))
      }
    }
  } finally {
    closeSync(file)
  }
}

const paths: readonly string[] = workerData
parentPort?.postMessage(paths.map(digest))
