import type { Command } from 'commander'
import { act } from '../args/action.ts'
import { examples } from '../args/examples.ts'
import type { CommandContext } from '../context.ts'

export interface DownOptions {
  readonly purge?: boolean
  readonly yes?: boolean
  readonly json?: boolean
}

export function addDown(program: Command, context: CommandContext): void {
  program
    .command('down')
    .description('End the servers and every sandbox on this machine.')
    .option(
      '--purge',
      'then remove everything SPACE made here: images, templates, databases, the client configuration',
    )
    .option('-y, --yes', 'do not ask before a purge')
    .option('--json', 'print what was ended and removed as JSON')
    .addHelpText('after', examples('sudo space down', 'sudo space down --purge'))
    .action((options: DownOptions) =>
      act(context, options, async () => {
        const { down } = await import('../server/down.ts')
        return await down(context, options)
      }),
    )
}
