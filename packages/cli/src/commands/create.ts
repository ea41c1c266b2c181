import type { Command } from 'commander'
import { act } from '../args/action.ts'
import { examples } from '../args/examples.ts'
import { collectEnv } from '../args/pairs.ts'
import { addSandboxOptions, type SandboxOptions, sandboxRequest } from '../args/sandbox-request.ts'
import { type CommandContext, openClient } from '../context.ts'
import { print } from '../terminal/terminal.ts'

interface Options extends SandboxOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly wait: boolean
  readonly json?: boolean
}

export function addCreate(program: Command, context: CommandContext): void {
  addSandboxOptions(program.command('create'))
    .description('Create a sandbox and print its id.')
    .option(
      '-e, --env <NAME=VALUE>',
      'a variable of every command in it; repeatable',
      collectEnv(context.env),
    )
    .option('--no-wait', 'do not wait until it runs')
    .option('--json', 'print the sandbox as JSON')
    .addHelpText(
      'after',
      examples(
        'space create',
        'space create --template base --memory-mib 2048 --metadata task=42',
        'id=$(space create)',
      ),
    )
    .action((options: Options) =>
      act(context, options, async () => {
        const client = await openClient(context)
        const request = {
          ...sandboxRequest(options),
          ...(options.env === undefined ? {} : { env: { ...options.env } }),
        }
        const { sandbox, operation } = await client.sandboxes.create(
          request,
          options.wait ? { waitSeconds: 60 } : {},
        )
        if (options.wait) await client.operations.wait(operation)
        const shown = options.json && options.wait ? await client.sandboxes.get(sandbox.id) : sandbox
        await print(context.terminal, options.json ? JSON.stringify(shown) : shown.id)
        return undefined
      }),
    )
}
