import { Interrupted } from '../failure.ts'

const watched = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
export type EndingSignal = (typeof watched)[number]

/** Calls `listener` for each SIGINT, SIGTERM and SIGHUP, instead of ending the process, until disposed of. */
export function onSignals(listener: (signal: EndingSignal) => void): Disposable {
  const listeners = watched.map((name) => ({ name, call: () => listener(name) }))
  for (const { name, call } of listeners) process.on(name, call)
  return {
    [Symbol.dispose]() {
      for (const { name, call } of listeners) process.off(name, call)
    },
  }
}

export interface Interrupts extends Disposable {
  /** Aborts with Interrupted at the first signal. */
  readonly signal: AbortSignal
}

/** Turns the first signal into an abort, so that a command can clean up; `onAgain` is called for each later one. */
export function watchInterrupts(onAgain: (signal: EndingSignal) => void): Interrupts {
  const abort = new AbortController()
  const watch = onSignals((signal) => {
    if (abort.signal.aborted) onAgain(signal)
    else abort.abort(new Interrupted(signal))
  })
  return { signal: abort.signal, [Symbol.dispose]: () => watch[Symbol.dispose]() }
}

/** What a shell reports of a command that died of this signal. */
export function signalExitCode(signal: EndingSignal): number {
  return 128 + { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }[signal]
}
