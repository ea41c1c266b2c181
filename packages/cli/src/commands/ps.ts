import type { Sandbox } from '@space/sdk'
import type { Command } from 'commander'
import { act } from '../args/action.ts'
import { examples } from '../args/examples.ts'
import { collectPairs } from '../args/pairs.ts'
import { type CommandContext, openClient } from '../context.ts'
import { renderAge } from '../render/quantity.ts'
import { renderTable } from '../render/table.ts'
import { print } from '../terminal/terminal.ts'

interface Options {
  readonly all?: boolean
  readonly quiet?: boolean
  readonly state?: string
  readonly template?: string
  readonly metadata?: Readonly<Record<string, string>>
  readonly json?: boolean
}

export function addPs(program: Command, context: CommandContext): void {
  program
    .command('ps')
    .description('List sandboxes, newest first.')
    .option('-a, --all', 'deleted ones too')
    .option('-q, --quiet', 'ids alone')
    .option('-s, --state <state>', 'in this state: creating, running, deleting, deleted, failed …')
    .option('-t, --template <name>', 'made from this template')
    .option('-m, --metadata <KEY=VALUE>', 'with this pair; repeatable', collectPairs)
    .option('--json', 'print a JSON array')
    .addHelpText(
      'after',
      examples('space ps', 'space ps --metadata task=42 --json', 'space ps -q | xargs -r space rm'),
    )
    .action((options: Options) => act(context, options, () => list(context, options)))
}

async function list(context: CommandContext, options: Options): Promise<undefined> {
  const client = await openClient(context)
  const { state, template, metadata } = options
  const sandboxes: Sandbox[] = []
  for await (const sandbox of client.sandboxes.all({ state, template, metadata, limit: 1000 }))
    if (options.all || state !== undefined || sandbox.state !== 'deleted') sandboxes.push(sandbox)
  if (options.json) await print(context.terminal, JSON.stringify(sandboxes))
  else if (options.quiet) for (const { id } of sandboxes) await print(context.terminal, id)
  else
    await print(
      context.terminal,
      renderTable(
        header,
        sandboxes.map((sandbox) => row(sandbox, Date.now())),
      ),
    )
  return undefined
}

const header = ['SANDBOX', 'STATE', 'TEMPLATE', 'SHAPE', 'ENVIRONMENT', 'AGE', 'ACTIVE']

function row(sandbox: Sandbox, nowMs: number): string[] {
  const { vcpus, memory_mib: memoryMib } = sandbox.resources
  return [
    sandbox.id,
    sandbox.state,
    sandbox.template.ref,
    `${vcpus} × ${memoryMib} MiB`,
    sandbox.environment?.id ?? '-',
    renderAge(sandbox.created_at, nowMs),
    renderAge(sandbox.last_active_at, nowMs),
  ]
}
