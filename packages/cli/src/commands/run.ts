import {
  type CommandRequest,
  type Operation,
  type RunningCommand,
  type SpaceClient,
  SpaceError,
} from '@space/sdk'
import type { Command } from 'commander'
import { act } from '../args/action.ts'
import { addCommandOptions, type CommandOptions, commandRequest } from '../args/command-request.ts'
import { examples } from '../args/examples.ts'
import { addSandboxOptions, type SandboxOptions, sandboxRequest } from '../args/sandbox-request.ts'
import { type CommandContext, openClient } from '../context.ts'
import { followCommand, persistently } from '../streams/running-command.ts'
import { signalExitCode, watchInterrupts } from '../terminal/signals.ts'
import { note } from '../terminal/terminal.ts'

interface Options extends SandboxOptions, CommandOptions {
  readonly keep?: boolean
  readonly json?: boolean
}

/** How long the end of a run waits for the answer that its sandbox is being deleted. */
const deleteTimeoutMs = 30_000

export function addRun(program: Command, context: CommandContext): void {
  const command = program
    .command('run')
    .argument('<argv...>', 'the program and its arguments; no shell is implied')
  addCommandOptions(addSandboxOptions(command), context.env)
    .description('Run a command in a new sandbox, stream its output, and delete the sandbox.')
    .option('--keep', 'keep the sandbox; its id is told on stderr')
    .option('--json', 'print one JSON line an event instead of the output')
    .passThroughOptions()
    .addHelpText(
      'after',
      examples(
        'space run -- uname -a',
        "space run -- sh -c 'echo hello; exit 3'",
        'space run -i -- python3 - < script.py',
        'space run --keep --env GREETING=hi -- env',
      ) +
        '\n\nExits with the code of the command, 128 + N when signal N ended it, 124 after --timeout, 127 when there is no' +
        '\nsuch program, 126 when it cannot be started, 125 when SPACE itself failed. Ctrl-C deletes the sandbox too.',
    )
    .action((argv: string[], options: Options) =>
      act(context, { json: options.json, passesCodes: true }, () => run(context, argv, options)),
    )
}

async function run(context: CommandContext, argv: string[], options: Options): Promise<number> {
  const client = await openClient(context)
  let sandboxId: string | undefined
  using interrupts = watchInterrupts((signal) => {
    const look = sandboxId === undefined ? 'space ps' : `space rm ${sandboxId}`
    process.stderr.write(`space: not waiting any longer; the sandbox may be left\n  → ${look}\n`)
    process.exit(signalExitCode(signal))
  })
  // Not cut short by a signal: what the server began must be known here to be deleted.
  const { sandbox, operation } = await client.sandboxes.create(sandboxRequest(options))
  sandboxId = sandbox.id
  try {
    const { signal } = interrupts
    if (options.keep) await note(context.terminal, `space: sandbox ${sandbox.id}`)
    const running = await start(context, client, operation, sandbox.id, commandRequest(argv, options), signal)
    const { json, interactive } = options
    return await followCommand(context, running, { json, interactive, signal })
  } finally {
    if (!options.keep) await remove(context, client, sandbox.id)
  }
}

/**
 * Creates the command at once: the server holds it until the sandbox runs. When it does not wait that long, or the
 * sandbox failed, the operation says which.
 */
async function start(
  context: CommandContext,
  client: SpaceClient,
  operation: Operation,
  sandboxId: string,
  request: CommandRequest,
  signal: AbortSignal,
): Promise<RunningCommand> {
  const options = { signal, ...persistently(context) }
  try {
    return await client.commands.run(sandboxId, request, options)
  } catch (error) {
    if (!(error instanceof SpaceError) || (error.status !== 409 && error.status !== 503)) throw error
    await client.operations.wait(operation, { signal })
    return await client.commands.run(sandboxId, request, options)
  }
}

async function remove(context: CommandContext, client: SpaceClient, id: string): Promise<void> {
  try {
    await client.sandboxes.delete(id, { signal: AbortSignal.timeout(deleteTimeoutMs) })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    await note(context.terminal, `space: the sandbox could not be deleted: ${why}\n  → space rm ${id}`)
  }
}
