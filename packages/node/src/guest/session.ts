/**
 * Keeps a link to the agent of one machine for as long as the machine lives.
 *
 *   connecting ──opened──▶ linked ──link lost──▶ connecting (at once) ──failed──▶ waiting ──backoff──▶ connecting
 *       └────────────── close(), or the machine ended, in any phase ──────────────▶ closed
 *
 * Each phase is a value that holds what lives in it. L1: at most one byte stream to a machine is open at a time.
 * L2: who waits for a link gets one that has not ended. L3: after `closed` nothing is opened any more.
 */
import type { Machine } from '../machines/machine.ts'
import type { LinkBudgets } from './budgets.ts'
import { GuestLinkError } from './errors.ts'
import { type GuestLink, openGuestLink } from './link.ts'
import type { LinkSecretStore } from './secrets.ts'

interface Connecting {
  readonly kind: 'connecting'
  /** Failed attempts since the last link. */
  readonly failures: number
  readonly abort: AbortController
}
interface Linked {
  readonly kind: 'linked'
  readonly link: GuestLink
  readonly failures: number
  readonly sinceMs: number
}
interface Backoff {
  readonly kind: 'waiting'
  readonly failures: number
  readonly timer: NodeJS.Timeout
}
interface Closed {
  readonly kind: 'closed'
  readonly error: GuestLinkError
}
type Phase = Connecting | Linked | Backoff | Closed

/** What became of the link, for one line of log each. */
export type SessionEvent =
  | { readonly kind: 'linked'; readonly link: GuestLink; readonly attempts: number }
  | { readonly kind: 'attempt_failed'; readonly error: GuestLinkError; readonly retryInMs: number }
  | { readonly kind: 'link_ended'; readonly end: Awaited<GuestLink['closed']> }

export interface GuestSessionOptions {
  readonly machine: Pick<Machine, 'guest' | 'exited'>
  readonly secrets: LinkSecretStore
  readonly budgets?: Partial<LinkBudgets>
  /** Waits between failed attempts: doubled from the first to the last. */
  readonly firstRetryMs?: number
  readonly lastRetryMs?: number
  readonly onEvent?: (event: SessionEvent) => void
}

export interface GuestSession {
  readonly phase: Phase['kind']
  /** A live link: the present one or the next. Rejects with a GuestLinkError when the session closes or is aborted. */
  link(signal?: AbortSignal): Promise<GuestLink>
  /**
   * Runs something on a live link. With `repeat` it is run again on the next link when the link ended under it: for
   * calls that may happen twice, as every call of the agent but Signal may.
   */
  withClient<T>(
    run: (client: GuestLink['client'], link: GuestLink) => Promise<T>,
    options?: { readonly repeat?: boolean; readonly signal?: AbortSignal },
  ): Promise<T>
  /** Ends the link and opens no other. The machine goes on. Idempotent. */
  close(): Promise<void>
}

/** Starts to keep a link to a machine's agent. It closes itself when the machine ends. */
export function openGuestSession(options: GuestSessionOptions): GuestSession {
  const firstRetryMs = options.firstRetryMs ?? 25
  const lastRetryMs = options.lastRetryMs ?? 2_000
  const waiters = new Set<() => void>()
  let attempt: Promise<void> = Promise.resolve()
  let phase: Phase = connecting(0)
  void options.machine.exited.then(() => close(new GuestLinkError('lost', 'the machine ended')))

  return {
    get phase() {
      return phase.kind
    },
    link,
    async withClient(run, { repeat = false, signal } = {}) {
      for (;;) {
        const current = await link(signal)
        try {
          return await run(current.client, current)
        } catch (error) {
          if (!repeat || current.ended === undefined || signal?.aborted === true) throw error
        }
      }
    },
    async close() {
      close(new GuestLinkError('closed', 'by the node'))
      await attempt
    },
  }

  function enter(next: Phase): void {
    phase = next
    for (const wake of [...waiters]) wake()
  }

  function connecting(failures: number): Connecting {
    const next: Connecting = { kind: 'connecting', failures, abort: new AbortController() }
    attempt = attempt.then(() => open(next))
    return next
  }

  async function open(own: Connecting): Promise<void> {
    if (own.abort.signal.aborted) return
    try {
      const link = await openGuestLink({
        connect: (signal) => options.machine.guest(signal),
        secrets: options.secrets,
        signal: own.abort.signal,
        ...(options.budgets === undefined ? {} : { budgets: options.budgets }),
      })
      if (phase === own) linked(link, own.failures)
      else await link.close()
    } catch (error) {
      if (phase === own) failed(own, asLinkError(error))
    }
  }

  function linked(link: GuestLink, failures: number): void {
    const own: Linked = { kind: 'linked', link, failures, sinceMs: performance.now() }
    enter(own)
    options.onEvent?.({ kind: 'linked', link, attempts: failures + 1 })
    void link.closed.then((end) => {
      options.onEvent?.({ kind: 'link_ended', end })
      if (phase !== own) return
      // A link that was of use is taken up again at once; one that broke soon, or broke a rule, counts as a failure.
      const lasted = performance.now() - own.sinceMs >= lastRetryMs
      enter(lasted && end.kind === 'lost' ? connecting(0) : backoff(own.failures + 1))
    })
  }

  function failed(own: Connecting, error: GuestLinkError): void {
    const next = backoff(own.failures + 1)
    enter(next)
    options.onEvent?.({ kind: 'attempt_failed', error, retryInMs: retryMs(next.failures) })
  }

  function backoff(failures: number): Backoff {
    const timer = setTimeout(() => {
      if (phase.kind === 'waiting' && phase.timer === timer) enter(connecting(failures))
    }, retryMs(failures))
    return { kind: 'waiting', failures, timer }
  }

  function retryMs(failures: number): number {
    return Math.min(lastRetryMs, firstRetryMs * 2 ** Math.min(20, failures - 1))
  }

  function close(error: GuestLinkError): void {
    const last = phase
    if (last.kind === 'closed') return
    enter({ kind: 'closed', error })
    if (last.kind === 'connecting') last.abort.abort(error)
    if (last.kind === 'waiting') clearTimeout(last.timer)
    if (last.kind === 'linked') attempt = attempt.then(async () => void (await last.link.close()))
  }

  function link(signal?: AbortSignal): Promise<GuestLink> {
    return new Promise((resolve, reject) => {
      waiters.add(look)
      signal?.addEventListener('abort', look)
      look()

      function look(): void {
        if (signal?.aborted === true)
          settle(() => reject(new GuestLinkError('aborted', 'no link yet', { cause: signal.reason })))
        else if (phase.kind === 'closed') settle(reject.bind(undefined, phase.error))
        else if (phase.kind === 'linked' && phase.link.ended === undefined)
          settle(resolve.bind(undefined, phase.link))
      }

      function settle(answer: () => void): void {
        waiters.delete(look)
        signal?.removeEventListener('abort', look)
        answer()
      }
    })
  }
}

function asLinkError(error: unknown): GuestLinkError {
  return error instanceof GuestLinkError ? error : new GuestLinkError('connect_failed', String(error))
}
