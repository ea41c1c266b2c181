/**
 * The sandboxes of this node.
 *
 *   create ─▶ creating ─▶ running ─▶ failed (its machine ended)     any ─▶ deleting ─▶ gone
 *                 └─▶ failed       └─▶ released (the node stops, the machine runs on)
 *
 * Calls are level-triggered: "make it so" may be repeated, and joins what is under way. Machines outlive this object:
 * `start` adopts them, `release` lets go of them.
 */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { isId, PublicError } from '@space/contract'
import type { Logger } from 'pino'
import type { GuestLink } from '../guest/index.ts'
import type { Template, TemplateStore } from '../images/template-store.ts'
import type { GuestImage, Machine, MachineDriver, MachineExit } from '../machines/machine.ts'
import type { Processes } from '../processes/processes.ts'
import type { Bases } from '../snapshots/bases.ts'
import { baseTemplate } from './base-template.ts'
import { failureOfCreate, failureOfExit, machineGone, nodeStopping } from './failures.ts'
import { Gate } from './gate.ts'
import { clockIntervalMs, setClock } from './guest.ts'
import { type MadeMachine, machineSpec, openSession } from './machine.ts'
import { type MissingBase, makeSandbox, type NewSandbox, type SandboxMakerOptions } from './make.ts'
import { type NodePaths, sandboxPaths } from './paths.ts'
import { readRecord, type SandboxFailure, type SandboxRecord } from './record.ts'
import { type RunningGuest, runningGuest, type Sandbox, saveRecord } from './sandbox.ts'

export interface SandboxesOptions {
  readonly paths: NodePaths
  readonly driver: MachineDriver
  readonly guestImage: GuestImage
  readonly templates: Pick<TemplateStore, 'list' | 'resolve'>
  readonly bases: Bases
  readonly processes: Processes
  readonly nowMs: () => number
  readonly log: Logger
  /** How many machines are started at the same time. */
  readonly createsAtOnce: number
  readonly bootTimeoutMs: number
  readonly restoreTimeoutMs: number
  /** A sandbox came to be, changed its phase, or is gone (no phase any more). */
  readonly onChange: (sandbox: Sandbox, gone: boolean) => void
}

/** Creates that may be under way or waiting; more are refused. */
const maxCreatesWaiting = 500
const adoptsAtOnce = 8

export class Sandboxes {
  readonly #options: SandboxesOptions
  readonly #byId = new Map<string, Sandbox>()
  readonly #creates: Gate
  /** Sandboxes whose machine ended and whose end is being recorded. */
  readonly #failing = new Set<Promise<void>>()
  /** Aborted by `release`: from then on nothing is begun and nothing recorded. */
  readonly #stop = new AbortController()
  #clock: NodeJS.Timeout | undefined

  constructor(options: SandboxesOptions) {
    this.#options = options
    this.#creates = new Gate(options.createsAtOnce)
  }

  /** Takes up what the folders say: adopts machines that live, finishes deletes, clears what was half made. */
  async start(): Promise<void> {
    const { paths } = this.#options
    await mkdir(paths.sandboxes, { recursive: true, mode: 0o700 })
    const adopts = new Gate(adoptsAtOnce)
    const ids = (await readdir(paths.sandboxes)).filter((name) => isId('sandbox', name))
    await Promise.all(ids.map((id) => adopts.pass(() => this.#takeUp(id))))
    this.#clock = setInterval(() => this.#tellTheTime(), clockIntervalMs)
    this.#clock.unref()
  }

  /** All of them, in no order. */
  all(): Sandbox[] {
    return [...this.#byId.values()]
  }

  get(sandboxId: string): Sandbox | undefined {
    return this.#byId.get(sandboxId)
  }

  /** The guest of a sandbox that runs. */
  guest(sandboxId: string): RunningGuest | undefined {
    return runningGuest(this.#byId.get(sandboxId))
  }

  /** Notes that somebody used it. */
  touch(sandboxId: string): void {
    const sandbox = this.#byId.get(sandboxId)
    if (sandbox !== undefined) sandbox.lastActiveAtMs = this.#options.nowMs()
  }

  /** Makes it exist and run; resolves when it answers or has failed. The same id joins or finds what is there. */
  async create(wanted: NewSandbox): Promise<Sandbox> {
    this.#stop.signal.throwIfAborted()
    const known = this.#byId.get(wanted.sandboxId)
    if (known !== undefined) return await this.#settled(known)
    const waiting = this.all().filter((sandbox) => sandbox.phase.kind === 'creating').length
    if (waiting >= maxCreatesWaiting) throw tooManyCreates()
    const abort = new AbortController()
    const { promise, resolve } = Promise.withResolvers<void>()
    const sandbox: Sandbox = {
      id: wanted.sandboxId,
      paths: sandboxPaths(this.#options.paths, wanted.sandboxId),
      record: undefined,
      phase: { kind: 'creating', done: promise, abort },
      lastActiveAtMs: this.#options.nowMs(),
    }
    this.#byId.set(sandbox.id, sandbox)
    this.#options.onChange(sandbox, false)
    try {
      await this.#creates.pass(() => this.#make(sandbox, wanted, abort.signal), abort.signal)
    } catch (error) {
      const failure = failureOfCreate(error)
      // What was given up is no failure of the sandbox: its record says `creating`, and is cleared with it.
      if (abort.signal.aborted) sandbox.phase = { kind: 'failed', failure }
      else await this.#failed(sandbox, failure, error)
    } finally {
      resolve()
    }
    abort.signal.throwIfAborted()
    return await this.#settled(sandbox)
  }

  /** Removes everything of it. Resolves when nothing is left; rejects when something is, to be called again. */
  async delete(sandboxId: string): Promise<void> {
    const sandbox = this.#byId.get(sandboxId)
    if (sandbox === undefined) return
    if (sandbox.phase.kind === 'creating') {
      sandbox.phase.abort.abort(new PublicError('conflict', 'The sandbox was deleted while it was made.'))
      await sandbox.phase.done
    }
    this.#stop.signal.throwIfAborted()
    if (sandbox.phase.kind === 'deleting') return await sandbox.phase.done
    const machine = sandbox.phase.kind === 'running' ? sandbox.phase.machine : undefined
    const done = this.#remove(sandbox, machine)
    sandbox.phase = { kind: 'deleting', done }
    this.#options.onChange(sandbox, false)
    try {
      await done
    } catch (error) {
      this.#options.log.error(
        { op: 'delete', sandbox: sandboxId, err: error },
        'something of a sandbox is left',
      )
      const message = 'The sandbox could not be removed completely; the log of its node says why.'
      sandbox.phase = { kind: 'failed', failure: { code: 'internal', reason: 'delete_failed', message } }
      throw new PublicError('internal', message, {
        details: { reason: 'delete_failed' },
        retryable: true,
        cause: error,
      })
    }
  }

  /**
   * Lets go of every machine; what is being made is given up and cleared, what is being deleted is finished. How a
   * machine ends afterwards is for the next start to find.
   */
  async release(): Promise<void> {
    clearInterval(this.#clock)
    this.#stop.abort(nodeStopping())
    await Promise.all(this.all().map((sandbox) => this.#letGo(sandbox)))
    await Promise.allSettled(this.#failing)
  }

  /** Ends every machine; their sandboxes are failed until they are deleted. */
  async shutdown(): Promise<void> {
    const failure = {
      code: 'failed_precondition',
      reason: 'shut_down',
      message: 'SPACE was shut down.',
    } as const
    await Promise.all(
      this.all().map(async (sandbox) => {
        if (sandbox.phase.kind !== 'running') return
        const { machine } = sandbox.phase
        await this.#fail(sandbox, failure)
        await machine.close()
      }),
    )
  }

  async #letGo(sandbox: Sandbox): Promise<void> {
    const { phase } = sandbox
    if (phase.kind === 'creating') {
      phase.abort.abort(nodeStopping())
      await phase.done
    } else if (phase.kind === 'deleting') {
      await phase.done.catch(() => undefined)
    } else if (phase.kind === 'running') {
      sandbox.phase = { kind: 'released' }
      await phase.session.close()
      await phase.machine.release()
    }
  }

  async #settled(sandbox: Sandbox): Promise<Sandbox> {
    if (sandbox.phase.kind === 'creating') await sandbox.phase.done
    if (sandbox.phase.kind !== 'deleting' && this.#byId.get(sandbox.id) === sandbox) return sandbox
    throw new PublicError('conflict', 'The sandbox is being deleted.', { retryable: false })
  }

  async #make(sandbox: Sandbox, wanted: NewSandbox, signal: AbortSignal): Promise<void> {
    const startedMs = performance.now()
    const { made, template, missesBase } = await makeSandbox(sandbox, wanted, this.#maker, signal)
    await this.#running(sandbox, made, signal)
    const duration_ms = Math.round(performance.now() - startedMs)
    this.#options.log.info({
      op: 'create',
      outcome: 'running',
      sandbox: sandbox.id,
      from: made.from,
      duration_ms,
    })
    if (missesBase !== undefined) this.#leaveBase(template, missesBase)
  }

  async #running(sandbox: Sandbox, { machine, session }: MadeMachine, signal: AbortSignal): Promise<void> {
    const nowMs = this.#options.nowMs()
    try {
      signal.throwIfAborted()
      await this.#update(sandbox, { phase: 'running', startedAtMs: nowMs })
      signal.throwIfAborted()
    } catch (error) {
      await session.close()
      await machine.close()
      throw error
    }
    sandbox.phase = { kind: 'running', machine, session }
    sandbox.lastActiveAtMs = nowMs
    this.#watch(sandbox, machine)
    this.#options.onChange(sandbox, false)
  }

  #watch(sandbox: Sandbox, machine: Machine): void {
    const watched = machine.exited.then(async (exit: MachineExit) => {
      if (sandbox.phase.kind !== 'running' || sandbox.phase.machine !== machine) return
      const { reason, detail } = exit
      this.#options.log.warn({ sandbox: sandbox.id, reason, detail }, 'a machine ended')
      const failing = this.#fail(sandbox, failureOfExit(reason))
      this.#failing.add(failing)
      await failing.finally(() => this.#failing.delete(failing))
    })
    watched.catch((error: unknown) => {
      this.#options.log.error(
        { sandbox: sandbox.id, err: error },
        'a sandbox whose machine ended could not be recorded',
      )
    })
  }

  #leaveBase(template: Template, { shape, again }: MissingBase): void {
    const { bases, log } = this.#options
    const made = again
      ? bases.remake(baseTemplate(template), shape)
      : bases.ensure(baseTemplate(template), shape)
    made.catch((error: unknown) =>
      log.warn({ op: 'base', template: template.digest, err: error }, 'no base snapshot was made'),
    )
  }

  /** A create that came to nothing: its folder keeps the record alone. */
  async #failed(sandbox: Sandbox, failure: SandboxFailure, cause: unknown): Promise<void> {
    this.#options.log.error({
      op: 'create',
      outcome: 'failed',
      sandbox: sandbox.id,
      reason: failure.reason,
      err: cause,
    })
    await this.#fail(sandbox, failure)
  }

  async #fail(sandbox: Sandbox, failure: SandboxFailure): Promise<void> {
    const before = sandbox.phase
    sandbox.phase = { kind: 'failed', failure }
    if (before.kind === 'running') await before.session.close()
    await this.#options.processes.lose(sandbox.id)
    if (sandbox.record !== undefined) {
      await this.#update(sandbox, { phase: 'failed', failure }).catch((error: unknown) => {
        this.#options.log.error({ sandbox: sandbox.id, err: error }, 'a failed sandbox could not be recorded')
      })
    }
    this.#options.onChange(sandbox, false)
  }

  async #remove(sandbox: Sandbox, machine: Machine | undefined): Promise<void> {
    const startedMs = performance.now()
    const { driver, processes, log } = this.#options
    if (sandbox.record !== undefined) await this.#update(sandbox, { phase: 'deleting' })
    await processes.drop(sandbox.id)
    await machine?.close()
    await driver.clear(sandbox.paths.machine)
    await rm(sandbox.paths.folder, { recursive: true, force: true })
    this.#byId.delete(sandbox.id)
    this.#options.onChange(sandbox, true)
    log.info({
      op: 'delete',
      outcome: 'gone',
      sandbox: sandbox.id,
      duration_ms: Math.round(performance.now() - startedMs),
    })
  }

  async #takeUp(sandboxId: string): Promise<void> {
    const { driver, processes, nowMs, log } = this.#options
    const paths = sandboxPaths(this.#options.paths, sandboxId)
    const record = await readRecord(paths.record, sandboxId)
    if (record === undefined || record.phase === 'creating' || record.phase === 'deleting') {
      log.info({ op: 'adopt', outcome: 'cleared', sandbox: sandboxId, was: record?.phase ?? 'begun' })
      await processes.drop(sandboxId)
      await driver.clear(paths.machine)
      await rm(paths.folder, { recursive: true, force: true })
      return
    }
    const failure = record.failure ?? machineGone
    const sandbox: Sandbox = {
      id: sandboxId,
      paths,
      record,
      phase: { kind: 'failed', failure },
      lastActiveAtMs: nowMs(),
    }
    this.#byId.set(sandboxId, sandbox)
    const machine = record.phase === 'running' ? await driver.adopt(machineSpec(paths, record)) : undefined
    if (machine === undefined) {
      await driver.clear(paths.machine)
      await this.#fail(sandbox, failure)
    } else {
      const session = openSession(paths, machine, this.#maker)
      sandbox.phase = { kind: 'running', machine, session }
      this.#watch(sandbox, machine)
      await processes.resume(sandboxId, { session, defaults: record.defaults })
      this.#options.onChange(sandbox, false)
    }
    log.info({ op: 'adopt', outcome: machine === undefined ? 'failed' : 'running', sandbox: sandboxId })
  }

  #tellTheTime(): void {
    for (const { id, phase } of this.all()) {
      if (phase.kind !== 'running') continue
      setClock(phase.session).catch((error: unknown) =>
        this.#options.log.debug({ sandbox: id, err: error }, 'clock not set'),
      )
    }
  }

  async #update(sandbox: Sandbox, change: Partial<SandboxRecord>): Promise<void> {
    if (sandbox.record !== undefined) await saveRecord(sandbox, { ...sandbox.record, ...change })
  }

  get #maker(): SandboxMakerOptions {
    const { processes, log } = this.#options
    const onLink = (link: GuestLink) => {
      processes
        .reconcile(link)
        .catch((error: unknown) => log.debug({ err: error }, 'ended processes were not forgotten'))
    }
    return { ...this.#options, onLink }
  }
}

function tooManyCreates(): PublicError {
  return new PublicError(
    'capacity_unavailable',
    `The node is already making ${maxCreatesWaiting} sandboxes: try again later.`,
  )
}
