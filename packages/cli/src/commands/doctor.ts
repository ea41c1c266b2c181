import type { Command } from 'commander'
import { act } from '../args/action.ts'
import { examples } from '../args/examples.ts'
import type { CommandContext } from '../context.ts'

export function addDoctor(program: Command, context: CommandContext): void {
  program
    .command('doctor')
    .description('Check what SPACE needs of this machine; one line each, with the remedy.')
    .option('--fix', 'run the remedies that can be run, then check again')
    .option('--json', 'print a JSON array')
    .addHelpText(
      'after',
      `${examples('space doctor', 'sudo space doctor --fix')}\n\nExits with 1 when something is missing.`,
    )
    .action((options: { fix?: boolean; json?: boolean }) =>
      act(context, options, async () => {
        const { doctor } = await import('../server/doctor.ts')
        return await doctor(context, options)
      }),
    )
}
