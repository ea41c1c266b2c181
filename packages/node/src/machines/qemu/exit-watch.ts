/**
 * Sees VMMs end. Their pidfds are polled together in one system call that does not wait, four times a second and at
 * once when something else (a closed QMP channel) hints at an end: a thread for each would be dearer, and an adopted
 * VMM is no child that tells by SIGCHLD.
 */
import { anyEnded, type HeldProcess } from '../../host/pidfd.ts'

const intervalMs = 250

export class ExitWatch {
  readonly #watched = new Map<HeldProcess, () => void>()
  #timer: NodeJS.Timeout | undefined

  /** Resolves when the process has ended. Never rejects. */
  ended(held: HeldProcess): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#watched.set(held, resolve)
    this.#timer ??= setInterval(() => this.look(), intervalMs).unref()
    return promise
  }

  /** Stops watching a process without its having ended; its promise stays open. */
  forget(held: HeldProcess): void {
    this.#watched.delete(held)
    this.#stopWhenIdle()
  }

  /** Looks now. */
  look(): void {
    for (const held of anyEnded([...this.#watched.keys()])) {
      this.#watched.get(held)?.()
      this.#watched.delete(held)
    }
    this.#stopWhenIdle()
  }

  #stopWhenIdle(): void {
    if (this.#watched.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
