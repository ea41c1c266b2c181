/**
 * Tells those who wait in this process that a sandbox changed. It only saves time: whoever waits also looks again on
 * its own, since the change may have been made by another process or the ring lost.
 */
const lookAgainMs = 1000

export class Bell {
  readonly #waiting = new Map<string, Set<() => void>>()
  readonly #whenAsked = new Set<() => void>()

  /** Called after the commit of a change. */
  ring(sandboxId: string): void {
    for (const wake of this.#waiting.get(sandboxId) ?? []) wake()
  }

  /** Called after the commit of something a node must be asked. */
  asked(): void {
    for (const listener of this.#whenAsked) listener()
  }

  /** Calls back whenever there is something to ask a node, until the answer is called. */
  onAsked(listener: () => void): () => void {
    this.#whenAsked.add(listener)
    return () => this.#whenAsked.delete(listener)
  }

  /**
   * Looks until `look` gives something or the time is up; the last look decides. Rejects with the signal's reason when
   * it is aborted.
   */
  async waitFor<T>(
    sandboxId: string,
    look: () => Promise<T | undefined>,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<T | undefined> {
    const endsAt = performance.now() + timeoutMs
    for (;;) {
      signal?.throwIfAborted()
      const ring = this.#nextRing(sandboxId)
      try {
        const found = await look()
        const leftMs = endsAt - performance.now()
        if (found !== undefined || leftMs <= 0) return found
        await Promise.race([ring.rung, delay(Math.min(lookAgainMs, leftMs), signal)])
      } finally {
        ring.cancel()
      }
    }
  }

  #nextRing(sandboxId: string): { rung: Promise<void>; cancel: () => void } {
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiting = this.#waiting.get(sandboxId) ?? new Set()
    this.#waiting.set(sandboxId, waiting.add(resolve))
    const cancel = () => {
      waiting.delete(resolve)
      if (waiting.size === 0 && this.#waiting.get(sandboxId) === waiting) this.#waiting.delete(sandboxId)
    }
    return { rung: promise, cancel }
  }
}

function delay(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(finish, ms)
    signal?.addEventListener('abort', finish, { once: true })
    function finish() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', finish)
      resolve()
    }
  })
}
