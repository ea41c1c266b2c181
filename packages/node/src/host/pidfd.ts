import { constants } from 'node:os'
import koffi from 'koffi'
import { Descriptor } from './descriptors.ts'
import { errnoName, HostError } from './host-error.ts'
import { check, libc } from './libc.ts'
import { readStat } from './procfs.ts'

const pidfdSendSignal = 424
const pidfdOpen = 434
const pidfdGetfd = 438
const pollIn = 1

/** A process by pid and start time: what survives in a file, and cannot be mistaken for a later process. */
export interface ProcessIdentity {
  readonly pid: number
  readonly startTicks: number
}

/**
 * A hold on one process, child or not, that never reaches a later process of the same pid. It is signalled and
 * watched through the pidfd.
 */
export class HeldProcess implements Disposable {
  readonly identity: ProcessIdentity
  readonly #pidfd: Descriptor

  private constructor(identity: ProcessIdentity, pidfd: Descriptor) {
    this.identity = identity
    this.#pidfd = pidfd
  }

  /** Takes hold of a process, or answers undefined when it is gone or is another one. */
  static open(pid: number, startTicks?: number): HeldProcess | undefined {
    const fd = Number(libc.syscall(pidfdOpen, pid, 0, 0, 0))
    if (fd < 0) {
      const name = errnoName(koffi.errno())
      if (name === 'ESRCH' || name === 'EINVAL') return undefined
      throw new HostError('pidfd_open', name)
    }
    const pidfd = new Descriptor(fd)
    const stat = readStat(pid)
    if (
      stat === undefined ||
      stat.state === 'Z' ||
      (startTicks !== undefined && stat.startTicks !== startTicks)
    ) {
      pidfd.close()
      return undefined
    }
    return new HeldProcess({ pid, startTicks: stat.startTicks }, pidfd)
  }

  /** Sends a signal; false when the process is gone. */
  signal(name: 'SIGTERM' | 'SIGKILL'): boolean {
    return Number(libc.syscall(pidfdSendSignal, this.#pidfd.fd, constants.signals[name], 0, 0)) === 0
  }

  /** Whether the process has ended, a zombie counting as ended. */
  get ended(): boolean {
    return anyEnded([this]).length === 1
  }

  /** A copy of one of the process's own descriptors. It is whatever the process put there: check it before use. */
  takeDescriptor(fd: number): Descriptor {
    return new Descriptor(check('pidfd_getfd', libc.syscall(pidfdGetfd, this.#pidfd.fd, fd, 0, 0)))
  }

  /** For `anyEnded`. */
  get pollFd(): number {
    return this.#pidfd.fd
  }

  close(): void {
    this.#pidfd.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }
}

/** Which of these processes have ended, by one poll that does not wait. */
export function anyEnded(held: readonly HeldProcess[]): HeldProcess[] {
  if (held.length === 0) return []
  const entries = held.map(({ pollFd }) => ({ fd: pollFd, events: pollIn, revents: 0 }))
  check('poll', libc.poll(entries, entries.length, 0))
  return held.filter((_, index) => entries[index]?.revents !== 0)
}
