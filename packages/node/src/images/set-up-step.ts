/** One thing set-up does to a host: told beforehand, skipped when done, safe to interrupt at any point. */
export interface SetUpStep {
  readonly id: string
  /** A sentence without a full stop that says what it does. */
  readonly title: string
  readonly estimate: SetUpEstimate
  /** Where what it makes goes: a path, or `the system`. */
  readonly where: string
  /** How to take it back: a command or a sentence. */
  readonly undo: string
  /** Ids of steps that must be done before. */
  readonly after: readonly string[]
  isDone(): Promise<boolean>
  /** Does it; tells how far it is, 0 to 1, where it knows. Safe to call when done. Errors are `SetUpError`s. */
  run(progress: SetUpProgress, signal: AbortSignal): Promise<void>
}

export interface SetUpEstimate {
  readonly fetchBytes: number
  readonly diskBytes: number
  readonly seconds: number
}

export type SetUpProgress = (message: string, fraction?: number) => void

/** What happens to a step while all are run. */
export type SetUpEvent =
  | { readonly kind: 'skipped' | 'started' | 'done'; readonly step: SetUpStep }
  | {
      readonly kind: 'progress'
      readonly step: SetUpStep
      readonly message: string
      readonly fraction?: number
    }

/**
 * Runs all steps that are not done, each as soon as those before it are, several at a time where that is possible. The
 * first failure stops the others, waits for them, and is thrown.
 */
export async function runSetUp(
  steps: readonly SetUpStep[],
  tell: (event: SetUpEvent) => void,
  signal?: AbortSignal,
): Promise<void> {
  const stop = new AbortController()
  const all = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal])
  const running = new Map<string, Promise<void>>()
  for (const step of steps) {
    const before = step.after.map((id) => running.get(id))
    running.set(step.id, runStep(step, before, tell, all))
  }
  let first: unknown
  const ended = [...running.values()].map((promise) =>
    promise.catch((error: unknown) => {
      first ??= error
      stop.abort(error)
    }),
  )
  await Promise.all(ended)
  if (first !== undefined) throw first
}

async function runStep(
  step: SetUpStep,
  before: readonly (Promise<void> | undefined)[],
  tell: (event: SetUpEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  await Promise.all(before)
  signal.throwIfAborted()
  if (await step.isDone()) {
    tell({ kind: 'skipped', step })
    return
  }
  tell({ kind: 'started', step })
  await step.run((message, fraction) => {
    tell({ kind: 'progress', step, message, ...(fraction !== undefined && { fraction }) })
  }, signal)
  tell({ kind: 'done', step })
}
