/** Who waits for the next change of something: all are woken at once, each waits anew. */
export class Waiters {
  readonly #waiting = new Set<() => void>()

  /** Resolves at the next `wake`; rejects with the signal's reason. Check the state before, in the same turn. */
  wait(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason)
        return
      }
      const abort = () => {
        this.#waiting.delete(done)
        reject(signal?.reason)
      }
      const done = () => {
        signal?.removeEventListener('abort', abort)
        resolve()
      }
      signal?.addEventListener('abort', abort, { once: true })
      this.#waiting.add(done)
    })
  }

  wake(): void {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const done of waiting) done()
  }

  get size(): number {
    return this.#waiting.size
  }
}
