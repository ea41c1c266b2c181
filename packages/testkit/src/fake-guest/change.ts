/** Something that may have changed: who waits looks again. */
export class Change {
  readonly #waiting = new Set<() => void>()

  announce(): void {
    for (const look of [...this.#waiting]) look()
  }

  /** Resolves as soon as `happened` says so, looking again at each change; rejects with the signal's reason. */
  until(happened: () => boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting
      waiting.add(look)
      signal.addEventListener('abort', look)
      look()

      function look(): void {
        if (!signal.aborted && !happened()) return
        waiting.delete(look)
        signal.removeEventListener('abort', look)
        if (signal.aborted) reject(signal.reason)
        else resolve()
      }
    })
  }
}
