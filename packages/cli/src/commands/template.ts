import type { Command } from 'commander'
import { act } from '../args/action.ts'
import { examples } from '../args/examples.ts'
import { type CommandContext, openClient } from '../context.ts'
import { renderAge, renderBytes } from '../render/quantity.ts'
import { renderTable } from '../render/table.ts'
import { print } from '../terminal/terminal.ts'

export function addTemplate(program: Command, context: CommandContext): void {
  const template = program
    .command('template')
    .description('List templates, and build them again on this machine.')
  template
    .command('ls')
    .description('List templates with their tags and digests.')
    .option('--json', 'print a JSON array')
    .addHelpText('after', examples('space template ls'))
    .action((options: { json?: boolean }) => act(context, options, () => list(context, options)))
  template
    .command('rebuild')
    .argument('[name]', 'the recipe: a folder of templates/', 'base')
    .description(
      'Build a template from its recipe and point its tags at the result; sandboxes keep what they began with.',
    )
    .option('--json', 'print the release as JSON')
    .addHelpText(
      'after',
      `${examples('sudo space template rebuild base')}\n\nRuns on the machine that serves, as root.`,
    )
    .action((name: string, options: { json?: boolean }) =>
      act(context, options, async () => {
        const { rebuildTemplate } = await import('../server/rebuild-template.ts')
        const release = await rebuildTemplate(context, name)
        await print(context.terminal, options.json ? JSON.stringify(release) : release.digest)
        return undefined
      }),
    )
}

async function list(context: CommandContext, options: { json?: boolean }): Promise<undefined> {
  const { items } = await (await openClient(context)).templates.list()
  const rows = items.map((template) => [
    template.name,
    template.tags.join(' ') || '-',
    template.digest.slice(0, 19),
    renderBytes(template.size_bytes),
    `${template.resources.vcpus} × ${template.resources.memory_mib} MiB`,
    renderAge(template.created_at, Date.now()),
  ])
  const header = ['TEMPLATE', 'TAGS', 'DIGEST', 'SIZE', 'SHAPE', 'AGE']
  await print(context.terminal, options.json ? JSON.stringify(items) : renderTable(header, rows))
  return undefined
}
