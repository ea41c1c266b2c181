/** A rate with a burst, counted without a timer: time is an argument. */
export interface Bucket {
  /** Takes an amount, into debt if need be, and says in how many milliseconds the debt is paid: 0 when there is none. */
  take(amount: number, nowMs: number): number
  /** Gives something back, never above the burst. */
  add(amount: number): void
}

/** A full bucket of `burst` that refills with `perSecond`. */
export function createBucket(perSecond: number, burst: number, nowMs: number): Bucket {
  let level = burst
  let filledAtMs = nowMs
  return {
    take(amount, atMs) {
      level = Math.min(burst, level + (Math.max(0, atMs - filledAtMs) * perSecond) / 1000)
      filledAtMs = atMs
      level -= amount
      return level >= 0 ? 0 : Math.ceil((-level * 1000) / perSecond)
    },
    add(amount) {
      level = Math.min(burst, level + amount)
    },
  }
}
