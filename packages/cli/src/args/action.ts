import type { CommandContext } from '../context.ts'
import { exitCodes } from '../failure.ts'
import { describeFailure, failureJson, renderFailure } from '../render/failure.ts'
import { note } from '../terminal/terminal.ts'

export interface ActionOptions {
  readonly json?: boolean | undefined
  /** Whether the command exits with codes of a program in a sandbox: SPACE's own failures are then all one code. */
  readonly passesCodes?: boolean | undefined
}

/**
 * Runs the body of a command. What it throws is shown on stderr, with its remedy (with `--json` as one line of JSON),
 * and decides what the process exits with; a number it returns is the exit code.
 */
export async function act(
  context: CommandContext,
  options: ActionOptions,
  body: () => Promise<number | undefined>,
): Promise<void> {
  try {
    context.exitCode = (await body()) ?? exitCodes.ok
  } catch (error) {
    const failure = describeFailure(error)
    context.exitCode = failure.exitCode
    if (failure.message === undefined) return
    if (options.passesCodes) context.exitCode = exitCodes.spaceFailed
    await note(context.terminal, options.json ? failureJson(failure) : renderFailure(failure))
  }
}
