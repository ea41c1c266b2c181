/** Asks again, while a stream is open, whether its token still opens it. */
import type { PublicError } from '@space/contract'
import { toPublicError } from '@space/contract'

export interface AccessWatch {
  /** Aborts with the failure once access is gone. */
  readonly signal: AbortSignal
  stop(): void
}

const everyMs = 900
/** Control may restart without ending streams; it may not stay away. */
const maxUnansweredMs = 60_000

/** Watches until stopped. `ask` throws `unauthorized`, `forbidden` or `not_found` when access is gone. */
export function watchAccess(ask: () => Promise<unknown>): AccessWatch {
  const over = new AbortController()
  let answeredAtMs = performance.now()
  let asking = false
  const timer = setInterval(() => {
    if (asking) return
    asking = true
    void look().finally(() => {
      asking = false
    })
  }, everyMs)
  timer.unref()
  return {
    signal: over.signal,
    stop: () => clearInterval(timer),
  }

  async function look(): Promise<void> {
    try {
      await ask()
      answeredAtMs = performance.now()
    } catch (error) {
      const failure = toPublicError(error)
      if (isRefusal(failure) || performance.now() - answeredAtMs > maxUnansweredMs) over.abort(failure)
    }
  }
}

function isRefusal({ code }: PublicError): boolean {
  return code === 'unauthorized' || code === 'forbidden' || code === 'not_found'
}
