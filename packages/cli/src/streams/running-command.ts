import { type EventStreamOptions, type ProcessExit, type RunningCommand, SpaceError } from '@space/sdk'
import type { CommandContext } from '../context.ts'
import { CliFailure } from '../failure.ts'
import { exitCodeOf, explainExit, seemsToLackNetwork } from '../render/exit.ts'
import { note } from '../terminal/terminal.ts'
import { copyInput } from './input.ts'
import { copyOutput } from './output.ts'

export interface FollowOptions {
  readonly json?: boolean | undefined
  /** Whether our stdin goes to the command. */
  readonly interactive?: boolean | undefined
  readonly signal: AbortSignal
}

/**
 * Runs a command that was created, with this terminal as its own: output byte for byte, input when it asked for it.
 * Returns what to exit with, having said what the output does not explain.
 */
export async function followCommand(
  context: CommandContext,
  running: RunningCommand,
  options: FollowOptions,
): Promise<number> {
  const { terminal } = context
  const ended = new AbortController()
  const inputSignal = AbortSignal.any([options.signal, ended.signal])
  let inputFailure: unknown
  const onStarted = () => {
    if (!options.interactive) return
    copyInput(terminal.stdin, running.stdin, inputSignal).catch((error: unknown) => {
      inputFailure = error
    })
  }
  try {
    const copied = await copyOutput(terminal, running, {
      json: options.json,
      signal: options.signal,
      onStarted,
    })
    if (inputFailure !== undefined) await note(terminal, `space: stdin was cut short: ${inputFailure}`)
    if (copied === undefined) return 0
    if (!options.json) await explain(context, copied.exit, copied.stderrTail, running.process.argv)
    return exitCodeOf(copied.exit)
  } catch (error) {
    if (!(error instanceof SpaceError) || error.code !== 'stream_lost') throw error
    const remedy = `the process goes on; this continues its output: space logs -f ${running.process.id}`
    throw new CliFailure(error.message, { code: error.code, remedy, cause: error })
  } finally {
    ended.abort()
  }
}

async function explain(
  context: CommandContext,
  exit: ProcessExit,
  stderrTail: string,
  argv: readonly string[],
): Promise<void> {
  const sentence = explainExit(exit, argv)
  if (sentence !== undefined) await note(context.terminal, `space: ${sentence}`)
  if (seemsToLackNetwork(exit, stderrTail))
    await note(
      context.terminal,
      'space: this looks like a missing network: sandboxes have none in this release.\n' +
        '  → pass in what the command needs by stdin (-i)',
    )
}

/** How long a command line goes on trying to continue a stream, in milliseconds; whoever watches can end it sooner. */
const maxOutageMs = 600_000

/** Continues a stream through outages, and says so once one lasts long enough to be noticed. */
export function persistently(context: CommandContext): Pick<EventStreamOptions, 'onLost' | 'maxOutageMs'> {
  return {
    maxOutageMs,
    onLost: ({ error, attempt }) => {
      if (attempt === 3)
        void note(context.terminal, `space: ${error.message}; the output continues as soon as it can`)
    },
  }
}
