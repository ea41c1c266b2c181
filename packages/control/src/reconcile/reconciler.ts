/**
 * Turns desired state into what nodes do. It claims due asks from the outbox under a lease, asks the node, and turns
 * the answer into an event; a failed ask comes back later, a lost one is found by the sweep, and one whose process died
 * is free again when its lease ends. A create that is overtaken by a delete is cut short first, so that at most one
 * ask of a sandbox is under way.
 */
import { randomBytes } from 'node:crypto'
import { backoffMs } from '@space/core'
import type { Kysely } from 'kysely'
import type { Logger } from 'pino'
import type { NodeApi } from '../node-link/node.ts'
import { changeSandbox, readLifecycle } from '../operations/change.ts'
import type { Lifecycle } from '../operations/lifecycle.ts'
import { claimAsks, freeAllLeases, postponeAsk, removeAsk, renewLeases } from '../store/asks.ts'
import { getSandbox } from '../store/sandboxes.ts'
import type { AskRow, Database, SandboxRow } from '../store/schema.ts'
import { type AskOutcome, askCreate, askDelete } from './ask.ts'

export interface ReconcilerLimits {
  readonly maxAsksUnderWay: number
  readonly leaseMs: number
  /** How often due asks are looked for without a bell. */
  readonly lookEveryMs: number
}

export const defaultReconcilerLimits: ReconcilerLimits = {
  maxAsksUnderWay: 64,
  leaseMs: 15_000,
  lookEveryMs: 500,
}

interface UnderWay {
  readonly ask: AskRow
  readonly abort: AbortController
  readonly ended: Promise<void>
}

export class Reconciler {
  readonly #lifecycle: Lifecycle
  readonly #nodeApi: NodeApi
  readonly #log: Logger
  readonly #limits: ReconcilerLimits
  readonly #owner = randomBytes(8).toString('hex')
  readonly #node: () => string | null
  readonly #underWay = new Map<string, UnderWay>()
  #timers: NodeJS.Timeout[] = []
  #stopListening: (() => void) | undefined
  #looking: Promise<void> | undefined
  #lookAgain = false
  #outOfRoom = false
  #closed = false

  constructor(
    lifecycle: Lifecycle,
    nodeApi: NodeApi,
    log: Logger,
    limits: ReconcilerLimits,
    node: () => string | null,
  ) {
    this.#lifecycle = lifecycle
    this.#nodeApi = nodeApi
    this.#log = log
    this.#limits = limits
    this.#node = node
  }

  async start(): Promise<void> {
    const { store, bell } = this.#lifecycle
    // Nobody else works on a store of one process: what its predecessor held is free at once.
    if (!store.sharedByProcesses) await store.write(freeAllLeases)
    this.#stopListening = bell.onAsked(() => this.look())
    this.#timers = [
      setInterval(() => this.look(), this.#limits.lookEveryMs),
      setInterval(() => this.#inBackground(this.#renew()), this.#limits.leaseMs / 3),
    ]
    this.look()
  }

  /** Looks for due asks, now or, when it is looking already, once more. */
  look(): void {
    if (this.#closed) return
    if (this.#looking !== undefined) {
      this.#lookAgain = true
      return
    }
    this.#looking = this.#inBackground(this.#claimAndRun()).finally(() => {
      this.#looking = undefined
      if (!this.#lookAgain) return
      this.#lookAgain = false
      this.look()
    })
  }

  /** Cuts short what is under way (it stays in the outbox) and ends. */
  async close(): Promise<void> {
    this.#closed = true
    this.#stopListening?.()
    for (const timer of this.#timers) clearInterval(timer)
    await this.#looking
    const ends = [...this.#underWay.values()].map((work) => {
      work.abort.abort()
      return work.ended
    })
    await Promise.all(ends)
  }

  async #claimAndRun(): Promise<void> {
    const { store, clock } = this.#lifecycle
    const room = this.#limits.maxAsksUnderWay - this.#underWay.size
    this.#outOfRoom = room <= 0
    if (this.#outOfRoom) return
    const nowMs = clock.nowMs()
    const claim = { owner: this.#owner, nowMs, leaseUntil: nowMs + this.#limits.leaseMs, limit: room }
    const { work, full } = await store.write((db) => this.#claim(db, claim))
    for (const { ask, row } of work) this.#run(ask, row)
    if (full) this.#lookAgain = true
  }

  /** Takes leases and notes that the operations have begun, in one transaction. */
  async #claim(db: Kysely<Database>, claim: Parameters<typeof claimAsks>[1]) {
    const asks = await claimAsks(db, claim)
    const work: { readonly ask: AskRow; readonly row: SandboxRow }[] = []
    for (const ask of asks) {
      const row = await getSandbox(db, ask.sandbox_id)
      if (!row || !isStillWanted(ask, row)) {
        await removeAsk(db, ask)
        continue
      }
      const { limits } = this.#lifecycle
      await changeSandbox(db, row, { kind: 'node_asked', ask: ask.ask }, claim.nowMs, limits)
      work.push({ ask, row })
    }
    return { work, full: asks.length === claim.limit }
  }

  #run(ask: AskRow, row: SandboxRow): void {
    const before = this.#underWay.get(ask.sandbox_id)
    before?.abort.abort()
    const abort = new AbortController()
    const ended = this.#inBackground(this.#work(ask, row, before?.ended, abort.signal)).finally(() => {
      if (this.#underWay.get(ask.sandbox_id)?.abort === abort) this.#underWay.delete(ask.sandbox_id)
      if (this.#outOfRoom) this.look()
    })
    this.#underWay.set(ask.sandbox_id, { ask, abort, ended })
  }

  async #work(
    ask: AskRow,
    row: SandboxRow,
    before: Promise<void> | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    await before
    const { clock } = this.#lifecycle
    const startedMs = performance.now()
    const outcome =
      ask.ask === 'create'
        ? await askCreate(this.#nodeApi, row, () => clock.nowMs(), signal)
        : await askDelete(this.#nodeApi, row, signal)
    if (signal.aborted && outcome.kind === 'again') return
    await this.#finish(ask, outcome)
    this.#report(ask, outcome, performance.now() - startedMs)
  }

  async #finish(ask: AskRow, outcome: AskOutcome): Promise<void> {
    const { store, clock } = this.#lifecycle
    if (outcome.kind === 'again') {
      const dueAtMs = clock.nowMs() + backoffMs(ask.attempts)
      await store.write((db) => postponeAsk(db, ask, dueAtMs))
      if (!this.#closed) setTimeout(() => this.look(), dueAtMs - clock.nowMs()).unref()
      return
    }
    if (!outcome.event) {
      await store.write((db) => removeAsk(db, ask))
      return
    }
    const observed = ask.ask === 'create' ? { node: this.#node(), ...outcome.observed } : {}
    await this.#lifecycle.apply(ask.sandbox_id, outcome.event, observed, (db) => removeAsk(db, ask))
  }

  #report(ask: AskRow, outcome: AskOutcome, durationMs: number): void {
    const line = {
      op: `node.${ask.ask}`,
      sandbox: ask.sandbox_id,
      attempt: ask.attempts + 1,
      outcome: outcome.kind === 'again' ? 'again' : (outcome.event?.kind ?? 'nothing'),
      duration_ms: Math.round(durationMs),
      ...(outcome.kind === 'again' && outcome.error ? { err: outcome.error } : {}),
    }
    if (outcome.kind === 'again' && outcome.error) this.#log.warn(line)
    else this.#log.info(line)
  }

  async #renew(): Promise<void> {
    const ids = [...this.#underWay.keys()]
    if (ids.length === 0) return
    const leaseUntil = this.#lifecycle.clock.nowMs() + this.#limits.leaseMs
    await this.#lifecycle.store.write((db) => renewLeases(db, this.#owner, ids, leaseUntil))
  }

  /** Background work reports its failures instead of throwing: leases and the sweep make up for them. */
  async #inBackground(work: Promise<void>): Promise<void> {
    try {
      await work
    } catch (err) {
      if (!this.#closed) this.#log.error({ op: 'reconcile', outcome: 'failed', err })
    }
  }
}

/** A create is asked only while creating; a delete also of what failed or is deleted, so that nothing stays behind. */
function isStillWanted(ask: AskRow, row: SandboxRow): boolean {
  const { kind } = readLifecycle(row.lifecycle).phase
  if (ask.ask === 'create') return kind === 'creating'
  return kind === 'deleting' || kind === 'deleted' || kind === 'failed'
}
