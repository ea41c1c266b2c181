import { runSetUp, type SetUpEvent, type SetUpStep } from '@space/node'
import type { CommandContext } from '../context.ts'
import { CliFailure } from '../failure.ts'
import { renderPlan } from '../render/plan.ts'
import { type ProgressView, progressView } from '../render/progress.ts'
import { confirm } from '../terminal/prompt.ts'
import { note } from '../terminal/terminal.ts'

export interface SetUpRunOptions {
  /** Goes ahead without asking. */
  readonly yes?: boolean | undefined
  readonly home: string
  readonly signal: AbortSignal
}

/**
 * Does what is still to do of a set-up: tells the plan, asks once when there is a terminal to ask on, and shows each
 * step. Interrupted at any point it continues there the next time.
 */
export async function runMissingSteps(
  context: CommandContext,
  steps: readonly SetUpStep[],
  options: SetUpRunOptions,
): Promise<void> {
  const done = await Promise.all(steps.map((step) => step.isDone()))
  const missing = steps.filter((_, index) => done[index] === false)
  if (missing.length === 0) return
  const { terminal } = context
  await note(terminal, renderPlan(missing, options.home))
  const asks = !options.yes && terminal.stdin.isTTY === true && terminal.stderr.isTTY === true
  if (asks && !(await confirm(terminal, '\nGo on?', options.signal)))
    throw new CliFailure('nothing was done', {
      code: 'declined',
      remedy: 'run it again when you want to go on',
    })
  await note(terminal, '')
  using view = progressView(terminal)
  try {
    await runSetUp(steps, (event) => show(view, event), options.signal)
  } catch (error) {
    if (options.signal.aborted) await note(terminal, '\nspace: interrupted; the next start continues here')
    throw error
  }
}

function show(view: ProgressView, event: SetUpEvent): void {
  if (event.kind === 'started') view.begin(event.step.id, event.step.title)
  else if (event.kind === 'progress') view.update(event.step.id, event.message, event.fraction)
  else if (event.kind === 'done') view.end(event.step.id, 'done')
}
