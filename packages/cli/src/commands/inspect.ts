import { isId } from '@space/contract/plain'
import type { SpaceClient } from '@space/sdk'
import type { Command } from 'commander'
import { act } from '../args/action.ts'
import { examples } from '../args/examples.ts'
import { type CommandContext, openClient } from '../context.ts'
import { renderRecord } from '../render/record.ts'
import { renderTable } from '../render/table.ts'
import { shellLine } from '../render/text.ts'
import { print } from '../terminal/terminal.ts'
import { findProcess } from './find-process.ts'

export function addInspect(program: Command, context: CommandContext): void {
  program
    .command('inspect')
    .argument('<id>', 'a sandbox, process or operation by its id, or a template by name, name:tag or digest')
    .description('Show everything the API tells about one object.')
    .option('--json', 'print it as JSON')
    .addHelpText(
      'after',
      examples('space inspect SANDBOX', 'space inspect PROCESS --json', 'space inspect base'),
    )
    .action((id: string, options: { json?: boolean }) =>
      act(context, options, async () => {
        const client = await openClient(context)
        const text = isId('sandbox', id)
          ? await sandbox(client, id, options)
          : await other(client, id, options)
        await print(context.terminal, text)
        return undefined
      }),
    )
}

async function sandbox(client: SpaceClient, id: string, options: { json?: boolean }): Promise<string> {
  const found = await client.sandboxes.get(id)
  const { items } = await client.processes.list(id, { limit: 100 })
  if (options.json) return JSON.stringify({ ...found, processes: items })
  if (items.length === 0) return renderRecord(found)
  const rows = items.map((process) => [process.id, process.state, outcome(process), shellLine(process.argv)])
  return `${renderRecord(found)}\n\n${renderTable(['PROCESS', 'STATE', 'CODE', 'COMMAND'], rows)}`
}

function outcome(process: { exit_code: number | null; signal: number | null }): string {
  return process.signal === null ? String(process.exit_code ?? '-') : `signal ${process.signal}`
}

async function other(client: SpaceClient, id: string, options: { json?: boolean }): Promise<string> {
  const found = isId('process', id)
    ? await findProcess(client, id)
    : isId('operation', id)
      ? await client.operations.get(id)
      : await client.templates.get(id)
  return options.json ? JSON.stringify(found) : renderRecord(found)
}
