/** Digests of large sparse files, made in a thread of their own: hashing on the main thread would hold up every stream. */
import { Worker } from 'node:worker_threads'

/** The SHA-256 over position and bytes of each chunk that is not all zeros. Rejects when the file cannot be read. */
export function sparseDigest(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./digest-worker.ts', import.meta.url), { workerData: path })
    worker.once('message', (digest: unknown) => resolve(String(digest)))
    worker.once('error', reject)
    worker.once('exit', () => reject(new RangeError(`no digest of ${path}`)))
  })
}
