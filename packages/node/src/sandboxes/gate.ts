/** Lets so many through at once; the others wait in the order they came. */
export class Gate {
  readonly #most: number
  readonly #waiting: (() => void)[] = []
  #inside = 0

  constructor(most: number) {
    this.#most = most
  }

  /** Runs the work when there is room. Rejects with the signal's reason when that comes first. */
  async pass<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#inside >= this.#most) await this.#turn(signal)
    else this.#inside += 1
    try {
      return await work()
    } finally {
      // A place is handed over, not given back, so that nobody slips in between.
      const next = this.#waiting.shift()
      if (next === undefined) this.#inside -= 1
      else next()
    }
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      const enter = () => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1)
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', leave, { once: true })
      this.#waiting.push(enter)
    })
  }
}
