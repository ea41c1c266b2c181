import type { SpaceClient } from '@space/sdk'
import type { Command } from 'commander'
import { act } from '../args/action.ts'
import { addCommandOptions, type CommandOptions, commandRequest } from '../args/command-request.ts'
import { examples } from '../args/examples.ts'
import { type CommandContext, openClient } from '../context.ts'
import { followCommand, persistently } from '../streams/running-command.ts'
import { type EndingSignal, onSignals, signalExitCode } from '../terminal/signals.ts'
import { note } from '../terminal/terminal.ts'

interface Options extends CommandOptions {
  readonly json?: boolean
}

export function addExec(program: Command, context: CommandContext): void {
  const command = program
    .command('exec')
    .argument('<sandbox>', 'its id')
    .argument('<argv...>', 'the program and its arguments; no shell is implied')
  addCommandOptions(command, context.env)
    .description('Run a command in a sandbox that exists, and stream its output.')
    .option('--json', 'print one JSON line an event instead of the output')
    .passThroughOptions()
    .addHelpText(
      'after',
      examples(
        'space exec SANDBOX -- ls -l',
        'space exec -i SANDBOX -- tar x < files.tar',
        'space exec -u root SANDBOX -- id',
      ) +
        '\n\nExit codes are those of `space run`. Ctrl-C is passed on to the command; a second one kills it.',
    )
    .action((sandbox: string, argv: string[], options: Options) =>
      act(context, { json: options.json, passesCodes: true }, () =>
        exec(context, sandbox, argv[0] === '--' ? argv.slice(1) : argv, options),
      ),
    )
}

async function exec(
  context: CommandContext,
  sandbox: string,
  argv: string[],
  options: Options,
): Promise<number> {
  const client = await openClient(context)
  const abort = new AbortController()
  const { signal } = abort
  const running = await client.commands.run(sandbox, commandRequest(argv, options), {
    signal,
    ...persistently(context),
  })
  using _ = passSignals(context, client, sandbox, running.process.id, abort)
  return await followCommand(context, running, {
    json: options.json,
    interactive: options.interactive,
    signal,
  })
}

/** First signal: the same to the command. Second: kill it. Third: leave it. */
function passSignals(
  context: CommandContext,
  client: SpaceClient,
  sandbox: string,
  processId: string,
  abort: AbortController,
): Disposable {
  let count = 0
  const pass = async (signal: EndingSignal) => {
    try {
      if (count === 1) await client.processes.signal(sandbox, processId, { signal })
      else await client.processes.kill(sandbox, processId)
    } catch (error) {
      await note(context.terminal, `space: ${signal} could not be passed on to ${processId}`)
      if (count > 1) abort.abort(error)
    }
  }
  return onSignals((signal) => {
    if (++count <= 2) return void pass(signal)
    process.stderr.write(
      `space: not waiting any longer; the command may go on\n  → space logs -f ${processId}\n`,
    )
    process.exit(signalExitCode(signal))
  })
}
