/** Digests of large sparse files, made in a thread of their own: hashing on the main thread would hold up every stream. */
import { Worker } from 'node:worker_threads'

/**
 * The SHA-256 of each file over position and bytes of its chunks that are not all zeros, in the order of the paths.
 * Rejects when one cannot be read.
 */
export function sparseDigests(paths: readonly string[]): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./digest-worker.ts', import.meta.url), { workerData: paths })
    worker.once('message', (digests: string[]) => resolve(digests))
    worker.once('error', reject)
    worker.once('exit', () => reject(new RangeError(`no digest of ${paths.join(', ')}`)))
  })
}
