/**
 * One live process: the agent's stream into the journal.
 *
 *   Start (until it is known to exist) | Join at the next byte wanted
 *     ─▶ started ─▶ output… ─▶ written ─▶ acknowledged ─▶ exited ─▶ row ─▶ process_exited ─▶ synced ─▶ forgotten
 *   link lost: the next link, the next Join (B1)
 *
 * The exit is recorded after the last byte (B2). Whatever the agent says is checked: an output out of place ends the
 * stream, not the node (F1).
 */
import { setTimeout as delay } from 'node:timers/promises'
import { Code, ConnectError } from '@connectrpc/connect'
import { type AttachResponse, type Exit, Output_Stream } from '@space/contract/guest'
import { type AttachRequests, attachRequests, type GuestLink, type GuestSession } from '../guest/index.ts'
import { JournalError, type JournalWriter, type OutputStream, Waiters } from '../journal/index.ts'
import type { ProcessExit, ProcessRow } from '../store/process-rows.ts'
import { exitedEvent, exitOfAgent, exitOfFailedStart, exitWithoutAgent } from './exit.ts'
import { type StartDefaults, startRequest } from './start-request.ts'
import { Stdin } from './stdin.ts'

export interface ProcessRunOptions {
  readonly row: ProcessRow
  readonly defaults: StartDefaults
  readonly writer: JournalWriter
  readonly nowMs: () => number
  readonly onStarted: (pid: number, startedAtMs: number) => void
  /** Records the exit; called before the stream shows it. */
  readonly onExit: (exit: ProcessExit) => void
  /** For the log: what went wrong with a stream that is taken up again. */
  readonly onTrouble: (what: string, error: unknown) => void
}

/** Waits between streams that brought nothing although the link lives. */
const firstRetryMs = 50
const lastRetryMs = 2000
/** So many of them in a row and the process is given up. */
const maxFruitlessAttempts = 20

const streams: Readonly<Record<Output_Stream, OutputStream | undefined>> = {
  [Output_Stream.UNSPECIFIED]: undefined,
  [Output_Stream.STDOUT]: 'stdout',
  [Output_Stream.STDERR]: 'stderr',
  [Output_Stream.PTY]: 'pty',
}

/** Answers to a Start that no repetition changes. */
const refusedStarts: Partial<Record<Code, string>> = {
  [Code.ResourceExhausted]: 'EAGAIN',
  [Code.InvalidArgument]: 'EINVAL',
}

type Outcome =
  | { readonly kind: 'ended'; readonly exit: ProcessExit }
  | { readonly kind: 'again'; readonly progress: boolean }

export class ProcessRun {
  readonly row: ProcessRow
  readonly stdin = new Stdin()
  readonly #options: ProcessRunOptions
  readonly #stop = new AbortController()
  readonly #startedOrOver = new Waiters()
  #requests: AttachRequests | undefined
  #following: Promise<void> | undefined
  #finishing: Promise<void> | undefined

  constructor(options: ProcessRunOptions) {
    this.row = options.row
    this.#options = options
  }

  get writer(): JournalWriter {
    return this.#options.writer
  }

  /** Tells the agent what is in the journal. */
  acknowledge(nextOffset: number): void {
    this.#requests?.ack(BigInt(nextOffset))
  }

  /** Follows the process over this machine's links. Resolves when it ended, or there are no links any more. Call once. */
  follow(session: GuestSession): Promise<void> {
    this.#following = this.#follow(session)
    return this.#following
  }

  /** Resolves when it is followed no longer. */
  get over(): Promise<void> {
    return this.#following ?? Promise.resolve()
  }

  /** Whether nothing more will be recorded of it than is being so: its exit, or nothing since it was let go. */
  get ended(): boolean {
    return this.#finishing !== undefined
  }

  /** Resolves once the agent has the process, or there will be none. */
  async started(signal: AbortSignal): Promise<void> {
    while (!this.writer.begun && !this.ended) await this.#startedOrOver.wait(signal)
  }

  /** Ends it without the agent: its machine is gone or going. Resolves when the exit stands in the journal. */
  async end(reason: 'lost' | 'sandbox_deleted'): Promise<void> {
    this.#stop.abort()
    await this.#following
    await this.#finish(exitWithoutAgent(reason, this.#options.nowMs()))
  }

  /** Lets go; the process runs on in its machine. What is not acknowledged will be sent again. */
  async release(): Promise<void> {
    this.#stop.abort()
    await this.#following
    // Whoever comes first, this or an end, is the last that touches row and journal.
    this.#finishing ??= this.writer.close()
    await this.#finishing
  }

  /** Gives up on a disk that does not take what waits: an `end` that waits for it rejects. */
  async abandon(): Promise<void> {
    this.#stop.abort()
    await this.writer.close()
  }

  async #follow(session: GuestSession): Promise<void> {
    let fruitless = 0
    while (!this.#stop.signal.aborted) {
      const outcome = await this.#attachOnce(session)
      if (outcome === 'session_over') return
      if (outcome.kind === 'ended') {
        await this.#finish(outcome.exit)
        await this.#forget(session)
        return
      }
      fruitless = outcome.progress ? 0 : fruitless + 1
      if (fruitless > maxFruitlessAttempts) {
        await this.#finish(exitWithoutAgent('lost', this.#options.nowMs()))
        return
      }
      if (fruitless > 0) await this.#pause(Math.min(lastRetryMs, firstRetryMs * 2 ** (fruitless - 1)))
    }
  }

  async #attachOnce(session: GuestSession): Promise<Outcome | 'session_over'> {
    let link: GuestLink
    try {
      link = await session.link(this.#stop.signal)
    } catch {
      return 'session_over'
    }
    let progress = false
    try {
      for await (const response of this.#attach(link)) {
        progress = true
        const exit = await this.#take(response)
        if (exit !== undefined) return { kind: 'ended', exit }
      }
    } catch (error) {
      const exit = this.#exitOfError(error)
      if (exit !== undefined) return { kind: 'ended', exit }
      if (link.ended === undefined && !this.#stop.signal.aborted) this.#options.onTrouble('stream', error)
    } finally {
      this.#requests?.end()
      this.#requests = undefined
      this.stdin.detached()
    }
    // A lost link says nothing about the process: only streams that break on a living one count.
    return { kind: 'again', progress: progress || link.ended !== undefined }
  }

  #attach(link: GuestLink): AsyncIterable<AttachResponse> {
    const { row, writer } = this.#options
    const known = link.hello.processes.find((process) => process.processId === row.processId)
    const first = writer.begun
      ? { case: 'join' as const, value: { processId: row.processId, fromOffset: BigInt(writer.nextOffset) } }
      : { case: 'start' as const, value: startRequest(row, this.#options.defaults) }
    const requests = attachRequests(first)
    this.#requests = requests
    this.stdin.attached(requests, Number(known?.stdinNextOffset ?? 0n))
    return link.client.attach(requests, { signal: this.#stop.signal })
  }

  /** What the agent's failure means for the process, when it means anything. */
  #exitOfError(error: unknown): ProcessExit | undefined {
    if (error instanceof JournalError && error.code === 'journal_gap') {
      this.#options.onTrouble('bytes are missing', error)
      return exitWithoutAgent('lost', this.#options.nowMs())
    }
    const { code } = ConnectError.from(error)
    if (this.writer.begun && code === Code.NotFound) return exitWithoutAgent('lost', this.#options.nowMs())
    const errno = this.writer.begun ? undefined : refusedStarts[code]
    if (errno !== undefined) {
      const never = exitWithoutAgent('lost', this.#options.nowMs())
      return { ...never, state: 'failed_to_start', reason: 'failed_to_start', errno }
    }
    return undefined
  }

  async #take(response: AttachResponse): Promise<ProcessExit | undefined> {
    const { kind } = response
    switch (kind.case) {
      case 'started':
        this.#started(kind.value.pid)
        return undefined
      case 'output': {
        const stream = streams[kind.value.stream]
        if (stream === undefined || !this.writer.begun)
          throw new ProtocolViolation('output of no stream, or before started')
        this.writer.append(stream, Number(kind.value.offset), kind.value.data)
        // Connect 2.3 races each read against one promise of the whole call, and so keeps every message until the call
        // ends: what it keeps must not hold the bytes.
        response.kind = { case: undefined }
        await this.writer.room(this.#stop.signal)
        return undefined
      }
      case 'stdinState':
        this.stdin.state(Number(kind.value.nextOffset), kind.value.brokenPipe)
        return undefined
      case 'startFailed':
        if (this.writer.begun) throw new ProtocolViolation('a running process failed to start')
        return exitOfFailedStart(kind.value, this.#options.nowMs())
      case 'exited':
        return this.#exited(kind.value)
      case undefined:
        return undefined
    }
  }

  #started(pid: number): void {
    if (this.writer.begun) return
    const startedAtMs = this.row.startedAtMs === 0 ? this.#options.nowMs() : this.row.startedAtMs
    this.#options.onStarted(pid, startedAtMs)
    const started_at = new Date(startedAtMs).toISOString()
    this.writer.event({ event: 'process_started', data: { process_id: this.row.processId, pid, started_at } })
    this.#startedOrOver.wake()
  }

  #exited(exit: Exit): ProcessExit {
    const missing = Number(exit.finalOffset) - this.writer.nextOffset
    if (!this.writer.begun || missing !== 0)
      throw new ProtocolViolation(`an exit with ${missing} bytes missing`)
    return exitOfAgent(exit, this.#options.nowMs())
  }

  /** Once, whoever comes first: the last byte, then the row, then the event, then the disk. */
  #finish(exit: ProcessExit): Promise<void> {
    this.#finishing ??= this.#finishNow(exit)
    return this.#finishing
  }

  async #finishNow(exit: ProcessExit): Promise<void> {
    this.stdin.ended()
    this.#startedOrOver.wake()
    try {
      await this.writer.flush()
      this.#options.onExit(exit)
      this.writer.event({ event: 'process_exited', data: exitedEvent(exit) })
      await this.writer.flush()
    } finally {
      await this.writer.close()
    }
  }

  async #forget(session: GuestSession): Promise<void> {
    try {
      await session.withClient((client) => client.forget({ processIds: [this.row.processId] }), {
        signal: this.#stop.signal,
      })
    } catch (error) {
      // The next link's table of processes still names it: it is forgotten then.
      this.#options.onTrouble('forget', error)
    }
  }

  async #pause(ms: number): Promise<void> {
    try {
      await delay(ms, undefined, { signal: this.#stop.signal })
    } catch {
      // Released or ended: the loop sees it.
    }
  }
}

/** The agent said what it must not. */
class ProtocolViolation extends Error {
  override readonly name = 'ProtocolViolation'
}
