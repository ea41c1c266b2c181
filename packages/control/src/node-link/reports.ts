import type { ObservedSandbox, Process } from '@space/contract/node-link'
import type { Observation } from '@space/core'
import type { Logger } from 'pino'
import type { ObservedColumns } from '../operations/change.ts'
import type { Lifecycle } from '../operations/lifecycle.ts'
import { putProcess } from '../store/processes.ts'
import { getSandbox } from '../store/sandboxes.ts'
import type { SandboxRow } from '../store/schema.ts'
import { askNode, type NodeApi } from './node.ts'
import { observedColumns, toObservation, toProcessRow } from './observed.ts'

/** Activity is written when it moved by this much: it is for people and idle timers, not for every byte. */
const activityStepMs = 10_000

/** Takes in what a node says of its sandboxes and processes; the same word twice changes nothing. */
export class NodeReports {
  readonly #lifecycle: Lifecycle
  readonly #nodeApi: NodeApi
  readonly #log: Logger
  #comparing: Promise<void> | undefined

  constructor(lifecycle: Lifecycle, nodeApi: NodeApi, log: Logger) {
    this.#lifecycle = lifecycle
    this.#nodeApi = nodeApi
    this.#log = log
  }

  /** One observed sandbox. What control does not know is left alone: it may be evidence. */
  async takeSandbox(seen: ObservedSandbox): Promise<void> {
    const { store, clock } = this.#lifecycle
    const observation = toObservation(seen, clock.nowMs())
    if (!observation) return
    const row = await getSandbox(store.read, seen.sandboxId)
    if (!row) {
      this.#log.warn({ op: 'report', outcome: 'unknown_sandbox', sandbox: seen.sandboxId.slice(0, 40) })
      return
    }
    const news = newsOf(row, observedColumns(seen))
    if (isKnown(row, observation) && Object.keys(news).length === 0) return
    await this.#lifecycle.apply(row.id, { kind: 'observed', observation }, news)
  }

  /** Summaries of processes; those of sandboxes control does not know are dropped. */
  async takeProcesses(processes: readonly Process[]): Promise<void> {
    if (processes.length === 0) return
    await this.#lifecycle.store.write(async (db) => {
      for (const process of processes) {
        const sandbox = await getSandbox(db, process.sandboxId)
        if (sandbox) await putProcess(db, toProcessRow(process, sandbox.account_id))
      }
    })
  }

  /** Asks the node for all it holds and settles every difference. */
  async compareWithNode(): Promise<void> {
    // Read first: what ran before the node was asked and is not in its answer is gone.
    const running = await this.#runningIds()
    const { sandboxes } = await askNode((options) => this.#nodeApi.describe({ sandboxIds: [] }, options))
    for (const seen of sandboxes) await this.takeSandbox(seen)
    const held = new Set(sandboxes.map((seen) => seen.sandboxId))
    for (const id of running)
      if (!held.has(id))
        await this.#lifecycle.apply(id, { kind: 'observed', observation: { state: 'absent' } })
  }

  /** Compares in the background, once at a time; a failure is left to the next sweep. */
  compareSoon(): void {
    this.#comparing ??= this.compareWithNode()
      .catch((err: unknown) => this.#log.warn({ op: 'report', outcome: 'not_compared', err }))
      .finally(() => {
        this.#comparing = undefined
      })
  }

  async close(): Promise<void> {
    await this.#comparing
  }

  async #runningIds(): Promise<string[]> {
    const rows = await this.#lifecycle.store.read
      .selectFrom('sandboxes')
      .select('id')
      .where('state', '=', 'running')
      .execute()
    return rows.map((row) => row.id)
  }
}

function isKnown(row: SandboxRow, observation: Observation): boolean {
  if (row.state === observation.state) return true
  return observation.state === 'absent' && row.state !== 'running'
}

/** Those of the columns that differ enough to be written. */
function newsOf(row: SandboxRow, columns: ObservedColumns): ObservedColumns {
  const { environment, last_active_at: activeAt } = columns
  return {
    ...(environment === undefined || environment === row.environment ? {} : { environment }),
    ...(typeof activeAt === 'number' && activeAt - (row.last_active_at ?? 0) >= activityStepMs
      ? { last_active_at: activeAt }
      : {}),
  }
}
