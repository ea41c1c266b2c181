import type { Command } from 'commander'
import { act } from '../args/action.ts'
import { examples } from '../args/examples.ts'
import type { CommandContext } from '../context.ts'

export interface UpOptions {
  readonly yes?: boolean
  readonly setupOnly?: boolean
  readonly first: boolean
  readonly json?: boolean
}

export function addUp(program: Command, context: CommandContext): void {
  program
    .command('up')
    .description(
      'Set this machine up where that is still to do, and serve: the API, the data plane and the sandboxes.',
    )
    .option('-y, --yes', 'do not ask before the set-up')
    .option('--setup-only', 'set up and end, without serving')
    .option('--no-first', 'do not run a first sandbox to show that it works')
    .option('--json', 'print one JSON line when it serves, instead of the text')
    .addHelpText(
      'after',
      `${examples('sudo space up', 'sudo space up --yes', 'sudo space up --setup-only')}\n\n` +
        'Ctrl-C ends the servers; sandboxes go on and are found again by the next start. `space down` ends them too.',
    )
    .action((options: UpOptions) =>
      act(context, options, async () => {
        const { up } = await import('../server/up.ts')
        return await up(context, options)
      }),
    )
}
