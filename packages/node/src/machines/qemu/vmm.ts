/** One QEMU process of ours, child or adopted: its pidfd, its QMP channel, and why it ended. */
import type { ChildProcess } from 'node:child_process'
import type { Descriptor } from '../../host/descriptors.ts'
import type { HeldProcess } from '../../host/pidfd.ts'
import { MachineError } from '../machine-error.ts'
import type { ExitWatch } from './exit-watch.ts'
import type { Qmp } from './qmp.ts'
import { readStderr } from './stderr-file.ts'

/** How long an exit code is waited for after the pidfd says that a child has ended. */
const exitCodeMs = 1_000
/** How long a VMM may take to leave by itself after `quit`. */
const quitMs = 5_000

/** How long a VMM may live after its control channel closed. */
const channelGraceMs = 1_000

export interface VmmEnd {
  /** Exit code, or undefined when a signal ended it or it was no child of ours. */
  readonly code: number | undefined
  readonly signal: string | undefined
  readonly stderr: string
}

export class Vmm {
  readonly held: HeldProcess
  readonly qmp: Qmp
  /** Resolves when the process has ended. Never rejects. */
  readonly ended: Promise<VmmEnd>
  readonly #watch: ExitWatch
  #state: 'held' | 'released' | 'ended' = 'held'

  constructor(parts: {
    held: HeldProcess
    qmp: Qmp
    watch: ExitWatch
    child?: ChildProcess | undefined
    stderr?: Descriptor | undefined
  }) {
    this.held = parts.held
    this.qmp = parts.qmp
    this.#watch = parts.watch
    void parts.qmp.closed.then(() => this.#channelClosed())
    this.ended = parts.watch.ended(parts.held).then(async () => {
      this.#state = 'ended'
      parts.qmp.close()
      const { code, signal } = await exitOf(parts.child)
      const stderr = parts.stderr === undefined ? '' : readStderr(parts.stderr)
      parts.stderr?.close()
      parts.held.close()
      return { code, signal, stderr }
    })
  }

  get pid(): number {
    return this.held.identity.pid
  }

  /** Ends it at once. Its memory and disk may be in any state. */
  async kill(): Promise<VmmEnd> {
    if (this.#state === 'held') this.held.signal('SIGKILL')
    return this.#soonEnded()
  }

  /** Lets it close its disks and leave; kills it when it does not. */
  async quit(): Promise<VmmEnd> {
    // A QEMU that leaves may close the channel before the answer is out.
    await this.qmp.execute('quit', {}, { timeoutMs: quitMs }).catch(() => undefined)
    const deadline = setTimeout(() => this.held.signal('SIGKILL'), quitMs)
    try {
      return await this.#soonEnded()
    } finally {
      clearTimeout(deadline)
    }
  }

  /** Lets go of the process without ending it. */
  release(): void {
    if (this.#state !== 'held') return
    this.#state = 'released'
    this.#watch.forget(this.held)
    this.qmp.close()
    this.held.close()
  }

  /** Passes on what a command gave; when the VMM ended under it, the error carries the VMM's last words. */
  async explained<Result>(work: Promise<Result>): Promise<Result> {
    try {
      return await work
    } catch (error) {
      if (!(error instanceof MachineError) || error.code !== 'vmm_gone' || this.#state === 'released')
        throw error
      const end = await this.ended
      throw new MachineError('vmm_gone', `the VMM ended early: ${lastWords(end)}`, { cause: error })
    }
  }

  /** Usually the process is ending. One that lives on without its control channel cannot be kept. */
  #channelClosed(): void {
    this.#watch.look()
    setTimeout(() => {
      if (this.#state === 'held') this.held.signal('SIGKILL')
    }, channelGraceMs).unref()
  }

  async #soonEnded(): Promise<VmmEnd> {
    const hurry = setInterval(() => this.#watch.look(), 5)
    try {
      return await this.ended
    } finally {
      clearInterval(hurry)
    }
  }
}

/** A line for the log: how it ended, and what it said. */
export function lastWords(end: VmmEnd): string {
  const how = end.signal ?? (end.code === undefined ? 'no exit code' : `exit code ${end.code}`)
  return end.stderr === '' ? how : `${how}: ${end.stderr}`
}

async function exitOf(child: ChildProcess | undefined): Promise<Pick<VmmEnd, 'code' | 'signal'>> {
  if (child === undefined) return { code: undefined, signal: undefined }
  if (child.exitCode === null && child.signalCode === null)
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, exitCodeMs)
      child.once('exit', () => {
        clearTimeout(timer)
        resolve()
      })
    })
  return { code: child.exitCode ?? undefined, signal: child.signalCode ?? undefined }
}
