/**
 * Repairs what no trigger brought: deadlines that passed, asks that are missing, sandboxes whose node lost them, rows
 * whose time is over. It runs again and again and each time does a bounded amount.
 */
import { limits } from '@space/contract'
import { type RetentionLimits, retentionCutoffs } from '@space/core'
import type { Logger } from 'pino'
import type { Tokens } from '../auth/tokens.ts'
import type { NodeReports } from '../node-link/reports.ts'
import type { Lifecycle } from '../operations/lifecycle.ts'
import { putAsk, sandboxesWithoutAsk } from '../store/asks.ts'
import { purge } from '../store/purge.ts'
import { dueSandboxes } from '../store/sandboxes.ts'

export interface SweepLimits {
  readonly everyMs: number
  /** How often the node is asked what it holds, and old rows are removed. */
  readonly deepEveryMs: number
  readonly maxSandboxes: number
}

export const defaultSweepLimits: SweepLimits = { everyMs: 1000, deepEveryMs: 60_000, maxSandboxes: 200 }

const retention: RetentionLimits = {
  operationMs: limits.operation_seconds * 1000,
  deletedSandboxMs: limits.operation_seconds * 1000,
  idempotencyMs: limits.idempotency_seconds * 1000,
  eventMs: limits.operation_seconds * 1000,
}

export class Sweep {
  readonly #lifecycle: Lifecycle
  readonly #tokens: Tokens
  readonly #reports: NodeReports
  readonly #log: Logger
  readonly #limits: SweepLimits
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #deepAtMs = Number.NEGATIVE_INFINITY

  constructor(
    lifecycle: Lifecycle,
    tokens: Tokens,
    reports: NodeReports,
    log: Logger,
    sweepLimits: SweepLimits,
  ) {
    this.#lifecycle = lifecycle
    this.#tokens = tokens
    this.#reports = reports
    this.#log = log
    this.#limits = sweepLimits
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#running ??= this.run().finally(() => {
        this.#running = undefined
      })
    }, this.#limits.everyMs)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#running
    await this.#part('tokens', () => this.#tokens.writeLastUsed())
  }

  /** One sweep; each part fails alone. */
  async run(): Promise<void> {
    await this.#part('deadlines', () => this.#passDeadlines())
    await this.#part('asks', () => this.#replaceLostAsks())
    await this.#part('tokens', () => this.#tokens.writeLastUsed())
    const nowMs = performance.now()
    if (nowMs - this.#deepAtMs < this.#limits.deepEveryMs) return
    this.#deepAtMs = nowMs
    await this.#part('node', () => this.#reports.compareWithNode())
    await this.#part('purge', () => this.#purge())
  }

  async #passDeadlines(): Promise<void> {
    const { store, clock } = this.#lifecycle
    for (const { id } of await dueSandboxes(store.read, clock.nowMs(), this.#limits.maxSandboxes))
      await this.#lifecycle.apply(id, { kind: 'deadline_reached' })
  }

  async #replaceLostAsks(): Promise<void> {
    const { store, clock, bell } = this.#lifecycle
    const lost = await sandboxesWithoutAsk(store.read, this.#limits.maxSandboxes)
    for (const { id } of lost) {
      // Looked at again inside the transaction: by now the sandbox may have moved on.
      await store.write(async (db) => {
        const [still] = await sandboxesWithoutAsk(db, 1, id)
        if (still) await putAsk(db, id, still.state === 'creating' ? 'create' : 'delete', clock.nowMs())
      })
      this.#log.warn({ op: 'sweep', sandbox: id, outcome: 'ask_replaced' })
      bell.asked()
    }
  }

  async #purge(): Promise<void> {
    const cutoffs = retentionCutoffs(this.#lifecycle.clock.nowMs(), retention)
    await this.#lifecycle.store.write((db) => purge(db, cutoffs))
  }

  async #part(name: string, run: () => Promise<void>): Promise<void> {
    try {
      await run()
    } catch (err) {
      this.#log.error({ op: 'sweep', part: name, outcome: 'failed', err })
    }
  }
}
