/**
 * Tells control what changed here: soon, in batches, the newest of each thing only, again until it is heard. Every so
 * often it tells all, so that what was lost on the way is put right.
 */
import type { Client } from '@connectrpc/connect'
import type { ControlService, ObservedSandbox, Process } from '@space/contract/node-link'
import type { Logger } from 'pino'

export interface ReporterOptions {
  readonly node: string
  readonly controlApi: Client<typeof ControlService>
  readonly log: Logger
  /** Everything this node has. */
  readonly all: () => ObservedSandbox[]
}

const gatherMs = 20
const completeEveryMs = 30_000
const firstRetryMs = 200
const lastRetryMs = 10_000
const maxProcessesPerReport = 500
/** Beyond it the oldest news of processes go: control asks the node for a process when it matters. */
const maxProcessesWaiting = 20_000

export class Reporter {
  readonly #options: ReporterOptions
  readonly #stop = new AbortController()
  #sandboxes = new Map<string, ObservedSandbox>()
  #processes = new Map<string, Process>()
  #complete = false
  #timer: NodeJS.Timeout | undefined
  #timerAtMs = 0
  #sending: Promise<void> | undefined
  #failures = 0
  #nextCompleteAtMs = 0

  constructor(options: ReporterOptions) {
    this.#options = options
  }

  /** Sends everything now and every half minute. */
  start(): void {
    this.#complete = true
    this.#schedule(0)
  }

  sandbox(sandbox: ObservedSandbox): void {
    this.#sandboxes.set(sandbox.sandboxId, sandbox)
    this.#schedule(gatherMs)
  }

  process(process: Process): void {
    this.#processes.delete(process.processId)
    this.#processes.set(process.processId, process)
    if (this.#processes.size > maxProcessesWaiting) {
      const [oldest] = this.#processes.keys()
      if (oldest !== undefined) this.#processes.delete(oldest)
    }
    this.#schedule(gatherMs)
  }

  /** Stops telling; a report under way is given up. */
  async close(): Promise<void> {
    this.#stop.abort()
    clearTimeout(this.#timer)
    await this.#sending
  }

  #schedule(inMs: number): void {
    if (this.#sending !== undefined || this.#stop.signal.aborted) return
    const atMs = performance.now() + inMs
    if (this.#timer !== undefined && this.#timerAtMs <= atMs) return
    clearTimeout(this.#timer)
    this.#timerAtMs = atMs
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#sending = this.#send().finally(() => {
        this.#sending = undefined
        this.#schedule(this.#nextInMs())
      })
    }, inMs)
    this.#timer.unref()
  }

  #nextInMs(): number {
    if (this.#failures > 0) return Math.min(lastRetryMs, firstRetryMs * 2 ** (this.#failures - 1))
    if (this.#sandboxes.size > 0 || this.#processes.size > 0) return 0
    return Math.max(0, this.#nextCompleteAtMs - performance.now())
  }

  async #send(): Promise<void> {
    const complete = this.#complete || performance.now() >= this.#nextCompleteAtMs
    const changed = this.#sandboxes
    const processes = [...this.#processes.values()].slice(0, maxProcessesPerReport)
    this.#sandboxes = new Map()
    for (const { processId } of processes) this.#processes.delete(processId)
    try {
      const { node, controlApi, all } = this.#options
      const sandboxes = complete ? [...all(), ...goneOf(changed, all())] : [...changed.values()]
      await controlApi.report({ node, sandboxes, processes, complete }, { signal: this.#stop.signal })
      this.#failures = 0
      if (complete) {
        this.#complete = false
        this.#nextCompleteAtMs = performance.now() + completeEveryMs
      }
    } catch (error) {
      this.#failures += 1
      this.#putBack(changed, processes)
      if (this.#failures === 1)
        this.#options.log.warn({ err: error }, 'control did not take a report: trying again')
    }
  }

  /** What was not heard waits again, unless there is newer news of the same thing. */
  #putBack(sandboxes: ReadonlyMap<string, ObservedSandbox>, processes: readonly Process[]): void {
    for (const [id, sandbox] of sandboxes) if (!this.#sandboxes.has(id)) this.#sandboxes.set(id, sandbox)
    for (const process of processes) {
      if (!this.#processes.has(process.processId)) this.#processes.set(process.processId, process)
    }
  }
}

/** Sandboxes that changed and are not among all any more: they are gone. */
function goneOf(
  changed: ReadonlyMap<string, ObservedSandbox>,
  all: readonly ObservedSandbox[],
): ObservedSandbox[] {
  const there = new Set(all.map(({ sandboxId }) => sandboxId))
  return [...changed.values()].filter(({ sandboxId }) => !there.has(sandboxId))
}
