import { isId } from '@space/contract/plain'
import type { Process, SpaceClient } from '@space/sdk'
import type { Command } from 'commander'
import { act } from '../args/action.ts'
import { examples } from '../args/examples.ts'
import { type CommandContext, openClient } from '../context.ts'
import { shellLine } from '../render/text.ts'
import { copyOutput } from '../streams/output.ts'
import { persistently } from '../streams/running-command.ts'
import { note } from '../terminal/terminal.ts'
import { findProcess } from './find-process.ts'

interface Options {
  readonly follow?: boolean
  readonly json?: boolean
}

/** How often a followed sandbox is asked for new processes, in milliseconds. */
const pollMs = 1_000

export function addLogs(program: Command, context: CommandContext): void {
  program
    .command('logs')
    .argument('<id>', 'a process, or a sandbox for all of its processes')
    .description('Print the recorded output of a process, or of every process of a sandbox.')
    .option('-f, --follow', 'go on until the process ends; of a sandbox, until it is deleted')
    .option('--json', 'print one JSON line an event instead of the output')
    .addHelpText(
      'after',
      examples('space logs PROCESS > output.txt', 'space logs -f PROCESS', 'space logs -f SANDBOX'),
    )
    .action((id: string, options: Options) =>
      act(context, options, async () => {
        const client = await openClient(context)
        if (isId('sandbox', id)) await sandboxLogs(context, client, id, options)
        else await processLogs(context, client, await findProcess(client, id), options)
        return undefined
      }),
    )
}

async function processLogs(
  context: CommandContext,
  client: SpaceClient,
  process: Process,
  options: Options,
): Promise<void> {
  // Attaching would start it: that is for whoever created it.
  if (process.state === 'created') {
    await note(context.terminal, `space: ${process.id} has not been started, so there is no output yet`)
    return
  }
  const ended = process.exited_at !== null
  const upToOffset = options.follow || ended ? undefined : process.output.next_offset
  if (upToOffset === 0) return
  const session = await client.processes.openSession(process.sandbox_id, process.id)
  const events = client.commands.attach(process, session, { ...persistently(context) })
  await copyOutput(context.terminal, events, { json: options.json, upToOffset })
}

async function sandboxLogs(
  context: CommandContext,
  client: SpaceClient,
  sandboxId: string,
  options: Options,
): Promise<void> {
  const seen = new Set<string>()
  const following = new Set<Promise<void>>()
  for (;;) {
    const fresh = (await startedProcesses(client, sandboxId)).filter((process) => !seen.has(process.id))
    for (const process of fresh) {
      seen.add(process.id)
      await note(context.terminal, `==> ${process.id}  ${shellLine(process.argv)}`)
      const copy: Promise<void> = processLogs(context, client, process, options).finally(() =>
        following.delete(copy),
      )
      if (options.follow) following.add(copy)
      else await copy
    }
    if (!options.follow) return
    const { state } = await client.sandboxes.get(sandboxId)
    if (state === 'deleted' || state === 'deleting') break
    await Promise.race([
      new Promise((resolve) => setTimeout(resolve, pollMs)),
      Promise.all([...following, never]),
    ])
  }
  await Promise.all(following)
}

/** Oldest first. */
async function startedProcesses(client: SpaceClient, sandboxId: string): Promise<Process[]> {
  const all = await Array.fromAsync(client.processes.all(sandboxId))
  return all.filter((process) => process.state !== 'created').reverse()
}

/** Keeps a failed copy noticed at once, and a finished one from ending the wait. */
const never = new Promise<void>(() => undefined)
