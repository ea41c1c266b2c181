/** Syncs journals that were written to, each about once a second, one after the other so that a slow disk is not asked twice at once. */
export interface Syncable {
  sync(): Promise<void>
}

export const syncIntervalMs = 1000

export class SyncSchedule {
  readonly #dirty = new Set<Syncable>()
  readonly #onError: (error: unknown) => void
  #running = false
  #timer: NodeJS.Timeout | undefined

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError
  }

  /** It has something to sync within about a second. */
  add(syncable: Syncable): void {
    this.#dirty.add(syncable)
    this.#schedule()
  }

  /** It syncs by itself from now on. */
  remove(syncable: Syncable): void {
    this.#dirty.delete(syncable)
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#dirty.clear()
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#running || this.#dirty.size === 0) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#syncAll()
    }, syncIntervalMs)
    this.#timer.unref()
  }

  async #syncAll(): Promise<void> {
    this.#running = true
    const round = [...this.#dirty]
    this.#dirty.clear()
    for (const syncable of round) {
      try {
        await syncable.sync()
      } catch (error) {
        this.#onError(error)
      }
    }
    this.#running = false
    this.#schedule()
  }
}
