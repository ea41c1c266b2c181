export interface Backoff {
  readonly firstMs: number
  readonly maxMs: number
}

/** Doubling waits with jitter: attempt 0 waits about `firstMs`, none longer than `maxMs`. `random` is in [0, 1). */
export function backoffMs(backoff: Backoff, attempt: number, random: number): number {
  const whole = Math.min(backoff.maxMs, backoff.firstMs * 2 ** Math.min(attempt, 30))
  return Math.round(whole * (0.5 + random / 2))
}

/** Waits, or rejects with the signal's reason as soon as it aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason)
      return
    }
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
