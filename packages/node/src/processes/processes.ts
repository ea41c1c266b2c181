/**
 * The processes of this node's sandboxes.
 *
 *   create ─▶ created ──first attach──▶ starting ─▶ running ─▶ exited | failed_to_start | lost
 *                └── nobody attached, or killed ─▶ exited (cancelled)
 *
 * Rows say what is; a run (run.ts) exists only while the agent has the process; the journal holds what it printed and
 * how it ended, and outlives it by the retention.
 */
import { rm } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { limits, PublicError } from '@space/contract'
import type { SignalRequest_Scope } from '@space/contract/guest'
import type { Logger } from 'pino'
import type { GuestLink, GuestSession } from '../guest/index.ts'
import {
  type Journal,
  type JournalLimits,
  JournalWriter,
  newJournal,
  openJournal,
  SyncSchedule,
} from '../journal/index.ts'
import type { NewProcess, ProcessExit, ProcessRow, ProcessRows } from '../store/process-rows.ts'
import { exitedEvent, exitWithoutAgent } from './exit.ts'
import {
  hasEnded,
  maxUnendedPerSandbox,
  noSuchProcess,
  noTerminal,
  notReachable,
  notRunning,
  notStarted,
  stdinIsNull,
  tooManyProcesses,
} from './failures.ts'
import { LiveRuns } from './live.ts'
import { ProcessRun } from './run.ts'
import type { StartDefaults } from './start-request.ts'
import type { Stdin } from './stdin.ts'

export interface ProcessesOptions {
  readonly rows: ProcessRows
  readonly journalFolder: (sandboxId: string, processId: string) => string
  /** The guest of a running sandbox, and what its commands get that name nothing else. */
  readonly guestOf: (sandboxId: string) => ProcessGuest | undefined
  readonly nowMs: () => number
  readonly log: Logger
  readonly journal: JournalLimits
  /** How long output is kept after the exit. */
  readonly retentionMs: number
  /** A process came to be, started or ended. */
  readonly onChange: (process: ProcessView) => void
}

export interface ProcessGuest {
  readonly session: GuestSession
  readonly defaults: StartDefaults
}

/** A row, with what its journal has at the moment. */
export interface ProcessView {
  readonly row: ProcessRow
  readonly firstOffset: number
  readonly nextOffset: number
}

/** How many rows one sweep ends or removes of each kind. */
const sweepBatch = 200
/** A disk that does not take the last record must not hold up a delete. */
const deletePatienceMs = 2000
/** How long a signal waits for its process to have been started. */
const startPatienceMs = 10_000
/** How long a kill waits, so that its answer is usually the end. */
const killPatienceMs = 500
const sigkill = 9

export class Processes {
  readonly #options: ProcessesOptions
  readonly #rows: ProcessRows
  readonly #live = new LiveRuns()
  readonly #sync: SyncSchedule

  constructor(options: ProcessesOptions) {
    this.#options = options
    this.#rows = options.rows
    this.#sync = new SyncSchedule((error) =>
      options.log.error({ err: error }, 'a journal could not be synced'),
    )
  }

  /** Records a process; the same id with the same command gives the record there is. */
  create(process: NewProcess): ProcessView {
    const known = this.#rows.get(process.processId)
    if (known !== undefined) {
      if (
        known.sandboxId === process.sandboxId &&
        JSON.stringify(known.command) === JSON.stringify(process.command)
      ) {
        return this.#view(known)
      }
      throw new PublicError('conflict', 'This process id belongs to another command.', { retryable: false })
    }
    if (this.#rows.countUnended(process.sandboxId) >= maxUnendedPerSandbox) throw tooManyProcesses()
    this.#rows.insert(process)
    this.#notify(process.processId)
    return this.get(process.sandboxId, process.processId)
  }

  /** Throws `not_found` when the sandbox has no such process. */
  get(sandboxId: string, processId: string): ProcessView {
    return this.#view(this.#row(sandboxId, processId))
  }

  /** Newest first, behind the sequence number of the last one of the page before. */
  list(sandboxId: string, beforeSequence: number, limit: number): ProcessView[] {
    return this.#rows.list(sandboxId, beforeSequence, limit).map((row) => this.#view(row))
  }

  /** Starts it when nobody did yet, and gives the journal to read either way. */
  async attach(sandboxId: string, processId: string): Promise<Journal> {
    const row = this.#row(sandboxId, processId)
    if (row.state === 'created') await this.#start(row)
    const run = this.#live.get(processId)
    if (run !== undefined) return (await run).writer.journal
    const { exit } = this.#row(sandboxId, processId)
    if (exit === undefined) throw notReachable()
    return await this.#journalOfEnded(row, exit)
  }

  /** The way into the process, which is started when nobody did yet. */
  async stdin(sandboxId: string, processId: string): Promise<Stdin> {
    const row = this.#row(sandboxId, processId)
    if (!row.command.stdinPipe && row.command.pty === undefined) throw stdinIsNull()
    return (await this.#liveRun(row)).stdin
  }

  /** Tells the process's terminal its size. */
  async resize(
    sandboxId: string,
    processId: string,
    cols: number,
    rows: number,
    signal: AbortSignal,
  ): Promise<void> {
    const row = this.#row(sandboxId, processId)
    if (row.command.pty === undefined) throw noTerminal()
    await (await this.#liveRun(row)).stdin.resize(cols, rows, signal)
  }

  /** Sends a signal. One that has ended stays as it is; one that was never started is cancelled by SIGKILL. */
  async signal(
    sandboxId: string,
    processId: string,
    signal: number,
    scope: SignalRequest_Scope,
  ): Promise<ProcessView> {
    const row = this.#row(sandboxId, processId)
    if (row.exit !== undefined) return this.#view(row)
    if (row.state === 'created') {
      if (signal !== sigkill) throw notStarted()
      this.#endRow(row, exitWithoutAgent('cancelled', this.#options.nowMs()))
      return this.get(sandboxId, processId)
    }
    const run = await this.#liveRun(row)
    await this.#deliver(run, signal, scope)
    if (signal === sigkill) await Promise.race([run.over, delay(killPatienceMs)])
    return this.get(sandboxId, processId)
  }

  /** A machine was adopted: its processes are followed on from the last byte in their journals. */
  async resume(sandboxId: string, guest: ProcessGuest): Promise<void> {
    for (const row of this.#rows.unended(sandboxId)) {
      if (row.state !== 'created') await this.#open(row, guest, openJournal)
    }
  }

  /** What the agent still keeps of processes whose end is recorded here is dropped. */
  async reconcile(link: GuestLink): Promise<void> {
    const processIds = link.hello.processes
      .map((process) => process.processId)
      .filter((processId) => this.#live.get(processId) === undefined)
      .filter((processId) => this.#rows.get(processId)?.exit !== undefined)
    if (processIds.length > 0) await link.client.forget({ processIds })
  }

  /** The machine is gone: what ran in it is `lost`, what was never started cannot be any more. */
  async lose(sandboxId: string): Promise<void> {
    await this.#endAll(sandboxId, 'lost')
  }

  /**
   * The sandbox goes: readers get the end, then rows and journals are nothing any more. A process that cannot be ended
   * in order, whatever its state, is let go of: its journal goes with the sandbox.
   */
  async drop(sandboxId: string): Promise<void> {
    const log = this.#options.log.child({ op: 'delete', sandbox: sandboxId })
    const ended = this.#endAll(sandboxId, 'sandbox_deleted').catch((error: unknown) =>
      log.warn({ err: error }, 'a process was not ended in order'),
    )
    await Promise.race([ended, delay(deletePatienceMs)])
    for (const opening of this.#live.ofSandbox(sandboxId)) {
      const run = await opening.catch(() => undefined)
      if (run === undefined) continue
      run.writer.journal.close()
      this.#live.remove(run.row.processId)
      run.abandon().catch((error: unknown) => log.warn({ err: error }, 'a journal was not closed in order'))
    }
    this.#rows.deleteSandbox(sandboxId)
  }

  /** Withdraws what nobody attached to in time and removes what was kept long enough. */
  async sweep(): Promise<void> {
    const nowMs = this.#options.nowMs()
    for (const row of this.#rows.unattached(nowMs - limits.session_attach_seconds * 1000, sweepBatch)) {
      this.#endRow(row, exitWithoutAgent('cancelled', nowMs))
    }
    for (const row of this.#rows.exitedBefore(nowMs - this.#options.retentionMs, sweepBatch)) {
      await rm(this.#options.journalFolder(row.sandboxId, row.processId), { recursive: true, force: true })
      this.#rows.delete(row.processId)
    }
  }

  /** Lets go of everything: journals are written and synced, processes run on in their machines. */
  async release(): Promise<void> {
    this.#sync.close()
    await Promise.all(
      this.#live.all().map(async (opening) => (await opening.catch(() => undefined))?.release()),
    )
  }

  async #start(row: ProcessRow): Promise<void> {
    const guest = this.#options.guestOf(row.sandboxId)
    if (guest === undefined) throw notRunning()
    if (!this.#rows.claimStart(row.processId)) return
    try {
      await this.#open({ ...row, state: 'starting' }, guest, newJournal)
    } catch (error) {
      const never = exitWithoutAgent('lost', this.#options.nowMs())
      this.#endRow(row, { ...never, state: 'failed_to_start', reason: 'failed_to_start', errno: 'EIO' })
      throw error
    }
  }

  #open(
    row: ProcessRow,
    guest: ProcessGuest,
    open: (folder: string) => Promise<Journal>,
  ): Promise<ProcessRun> {
    return this.#live.open(row.processId, row.sandboxId, async () => {
      const journal = await open(this.#options.journalFolder(row.sandboxId, row.processId))
      const run = this.#newRun(row, journal, guest.defaults)
      this.#follow(run, guest.session)
      return run
    })
  }

  #follow(run: ProcessRun, session: GuestSession): void {
    const { sandboxId, processId } = run.row
    run
      .follow(session)
      .then(() => {
        if (run.ended) this.#live.remove(processId)
      })
      .catch((error: unknown) => {
        // The agent still has the exit: the next start of the node takes it up. Until then nobody waits for it here.
        run.writer.journal.close()
        this.#live.remove(processId)
        const ids = { sandbox: sandboxId, process: processId }
        this.#options.log.error({ ...ids, err: error }, 'the end of a process could not be recorded')
      })
  }

  #newRun(row: ProcessRow, journal: Journal, defaults: StartDefaults): ProcessRun {
    const log = this.#options.log.child({ sandbox: row.sandboxId, process: row.processId })
    const writer: JournalWriter = new JournalWriter(journal, {
      limits: this.#options.journal,
      onWritten: (nextOffset) => run.acknowledge(nextOffset),
      onDirty: () => this.#sync.add(writer),
      onWriteError: (error) => log.error({ err: error }, 'output waits: the journal cannot be written'),
    })
    const run = new ProcessRun({
      row,
      defaults,
      writer,
      nowMs: this.#options.nowMs,
      onStarted: (pid, startedAtMs) => {
        this.#rows.started(row.processId, pid, startedAtMs)
        this.#notify(row.processId)
      },
      onExit: (exit) => {
        this.#sync.remove(writer)
        this.#endRow(row, exit, { firstOffset: journal.firstOffset, nextOffset: writer.nextOffset })
      },
      onTrouble: (what, error) => log.warn({ err: error }, `process ${what}: taken up again`),
    })
    return run
  }

  /** The run of a process that should have one; throws the reason when it has none. */
  async #liveRun(row: ProcessRow): Promise<ProcessRun> {
    if (row.state === 'created') await this.#start(row)
    const run = this.#live.get(row.processId)
    if (run !== undefined) return await run
    if (this.#rows.get(row.processId)?.exit !== undefined) throw hasEnded()
    throw notReachable()
  }

  async #deliver(run: ProcessRun, signal: number, scope: SignalRequest_Scope): Promise<void> {
    const guest = this.#options.guestOf(run.row.sandboxId)
    if (guest === undefined) throw notRunning()
    const patience = AbortSignal.timeout(startPatienceMs)
    try {
      await run.started(patience)
      if (run.ended) return
      const request = { processId: run.row.processId, signal, scope }
      await guest.session.withClient((client) => client.signal(request), {
        repeat: signal === sigkill,
        signal: patience,
      })
    } catch (error) {
      throw new PublicError('service_unavailable', 'The sandbox did not take the signal: try again.', {
        cause: error,
      })
    }
  }

  /** The journal of a process that ended, with the exit behind its last byte even if a crash came between. */
  async #journalOfEnded(row: ProcessRow, exit: ProcessExit): Promise<Journal> {
    const journal = await openJournal(this.#options.journalFolder(row.sandboxId, row.processId))
    if (journal.endedAt !== undefined) return journal
    const writer = new JournalWriter(journal, { limits: this.#options.journal })
    writer.event({ event: 'process_exited', data: exitedEvent(exit) })
    await writer.flush()
    await writer.close()
    return journal
  }

  async #endAll(sandboxId: string, reason: 'lost' | 'sandbox_deleted'): Promise<void> {
    await Promise.all(
      this.#live.ofSandbox(sandboxId).map(async (opening) => {
        const run = await opening.catch(() => undefined)
        if (run === undefined) return
        await run.end(reason)
        this.#live.remove(run.row.processId)
      }),
    )
    for (const row of this.#rows.unended(sandboxId))
      this.#endRow(row, exitWithoutAgent(reason, this.#options.nowMs()))
  }

  #endRow(row: ProcessRow, exit: ProcessExit, output = { firstOffset: 0, nextOffset: 0 }): void {
    this.#rows.ended(row.processId, exit, output)
    this.#notify(row.processId)
  }

  /** Tells of a row that changed, unless it went with its sandbox. */
  #notify(processId: string): void {
    const row = this.#rows.get(processId)
    if (row !== undefined) this.#options.onChange(this.#view(row))
  }

  #row(sandboxId: string, processId: string): ProcessRow {
    const row = this.#rows.get(processId)
    if (row === undefined || row.sandboxId !== sandboxId) throw noSuchProcess()
    return row
  }

  #view(row: ProcessRow): ProcessView {
    const writer = row.exit === undefined ? this.#live.opened(row.processId)?.writer : undefined
    return {
      row,
      firstOffset: writer?.journal.firstOffset ?? row.firstOffset,
      nextOffset: writer?.journal.written.offset ?? row.nextOffset,
    }
  }
}
