import type { Command } from 'commander'
import { act } from '../args/action.ts'
import { examples } from '../args/examples.ts'
import { type CommandContext, openClient } from '../context.ts'
import { describeFailure, renderFailure } from '../render/failure.ts'
import { note, print } from '../terminal/terminal.ts'

export function addRm(program: Command, context: CommandContext): void {
  program
    .command('rm')
    .argument('<sandbox...>', 'their ids')
    .description('Delete sandboxes with everything in them, and print the id of each once it is gone.')
    .option('--no-wait', 'do not wait until they are gone')
    .option('--json', 'print one operation as a JSON line each')
    .addHelpText('after', examples('space rm SANDBOX', 'space ps -q | xargs -r space rm'))
    .action((ids: string[], options: { wait: boolean; json?: boolean }) =>
      act(context, options, async () => {
        const client = await openClient(context)
        let exitCode = 0
        for (const id of ids)
          try {
            const { operation } = await client.sandboxes.delete(id, options.wait ? { waitSeconds: 60 } : {})
            const ended = options.wait ? await client.operations.wait(operation) : operation
            await print(context.terminal, options.json ? JSON.stringify(ended) : id)
          } catch (error) {
            // The others are deleted all the same; the last one is left to the common way of failing.
            if (id === ids.at(-1)) throw error
            const failure = describeFailure(error)
            if (failure.message !== undefined) await note(context.terminal, renderFailure(failure))
            exitCode = failure.exitCode
          }
        return exitCode
      }),
    )
}
