import type { Command } from 'commander'
import { act } from '../args/action.ts'
import { examples } from '../args/examples.ts'
import { type CommandContext, openClient } from '../context.ts'
import { renderAge } from '../render/quantity.ts'
import { renderTable } from '../render/table.ts'
import { print } from '../terminal/terminal.ts'

export function addAccount(program: Command, context: CommandContext): void {
  const account = program
    .command('account')
    .description('Make and list accounts; needs a token with the scope admin.')
  account
    .command('create')
    .argument('<name>')
    .description('Make an account and print its id.')
    .option('--json', 'print the account as JSON')
    .addHelpText(
      'after',
      examples('space account create team', 'space token create --account ACCOUNT_ID laptop'),
    )
    .action((name: string, options: { json?: boolean }) =>
      act(context, options, async () => {
        const made = await (await openClient(context)).accounts.create({ name })
        await print(context.terminal, options.json ? JSON.stringify(made) : made.id)
        return undefined
      }),
    )
  account
    .command('ls')
    .description('List accounts.')
    .option('--json', 'print a JSON array')
    .addHelpText('after', examples('space account ls'))
    .action((options: { json?: boolean }) =>
      act(context, options, async () => {
        const items = await Array.fromAsync((await openClient(context)).accounts.all())
        const rows = items.map(({ id, name, created_at }) => [id, name, renderAge(created_at, Date.now())])
        const text = options.json ? JSON.stringify(items) : renderTable(['ACCOUNT', 'NAME', 'AGE'], rows)
        await print(context.terminal, text)
        return undefined
      }),
    )
}
