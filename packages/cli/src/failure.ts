/** What commands exit with when it is not the code of a command that ran in a sandbox. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  unreachable: 4,
  /** `run` and `exec`: the command was ended by its time limit. */
  timedOut: 124,
  /** `run` and `exec`: SPACE itself failed, whatever the reason, so that no code of the command is mistaken. */
  spaceFailed: 125,
  /** `run` and `exec`: the program could not be started. */
  cannotStart: 126,
  /** `run` and `exec`: there is no such program. */
  noSuchProgram: 127,
} as const

export interface FailureOptions {
  /** What to do about it: a sentence or a command to copy. */
  readonly remedy?: string | undefined
  readonly exitCode?: number | undefined
  readonly code?: string | undefined
  readonly cause?: unknown
}

/** A failure a person can do something about: shown as its message and its remedy, never as a stack. */
export class CliFailure extends Error {
  override readonly name = 'CliFailure'
  readonly remedy: string | undefined
  readonly exitCode: number
  readonly code: string

  constructor(message: string, options: FailureOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.remedy = options.remedy
    this.exitCode = options.exitCode ?? exitCodes.failed
    this.code = options.code ?? 'failed'
  }
}

/** The end of a command by a signal: exits with 128 and the signal's number, without a message of its own. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  readonly signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP'

  constructor(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP') {
    super(`interrupted by ${signal}`)
    this.signal = signal
  }
}
