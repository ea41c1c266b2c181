import { isScope, type Scope, scopes } from '@space/contract/plain'
import { type Command, InvalidArgumentError } from 'commander'
import { act } from '../args/action.ts'
import { examples } from '../args/examples.ts'
import { parseExpiry } from '../args/quantities.ts'
import { type CommandContext, openClient } from '../context.ts'
import { renderAge } from '../render/quantity.ts'
import { renderTable } from '../render/table.ts'
import { note, print } from '../terminal/terminal.ts'

interface CreateOptions {
  readonly scope?: readonly Scope[]
  readonly account?: string
  readonly expires?: string
  readonly json?: boolean
}

interface ListOptions {
  readonly account?: string
  readonly json?: boolean
}

export function addToken(program: Command, context: CommandContext): void {
  const token = program.command('token').description('Make, list and revoke the tokens clients call with.')
  token
    .command('create')
    .argument('[name]', 'what it is for', 'cli')
    .description('Make a token and print its value, which is shown this once.')
    .option('--scope <scope>', `what it may do; repeatable: ${scopes.join(' ')}`, collectScope)
    .option('--account <id>', 'for this account instead of your own')
    .option('--expires <time>', 'when it ends: 30d, 12h or an RFC 3339 time', parseExpiry)
    .option('--json', 'print the token as JSON')
    .addHelpText(
      'after',
      examples('space token create ci --expires 90d', 'space token create reader --scope sandboxes:read'),
    )
    .action((name: string, options: CreateOptions) =>
      act(context, options, () => create(context, name, options)),
    )
  token
    .command('ls')
    .description('List the tokens of your account, without their values.')
    .option('--account <id>', 'of this account instead of your own')
    .option('--json', 'print a JSON array')
    .addHelpText('after', examples('space token ls', 'space token ls --account ACCOUNT_ID'))
    .action((options: ListOptions) => act(context, options, () => list(context, options)))
  token
    .command('revoke')
    .argument('<id>', 'as `space token ls` shows it')
    .description('End a token: it fails from the next call on.')
    .option('--json', 'print the id as JSON')
    .addHelpText('after', examples('space token revoke TOKEN_ID'))
    .action((id: string, options: { json?: boolean }) =>
      act(context, options, async () => {
        await (await openClient(context)).tokens.revoke(id)
        await print(context.terminal, options.json ? JSON.stringify({ id }) : id)
        return undefined
      }),
    )
}

async function create(context: CommandContext, name: string, options: CreateOptions): Promise<undefined> {
  const client = await openClient(context)
  const token = await client.tokens.create({
    name,
    ...(options.scope === undefined ? {} : { scopes: [...options.scope] }),
    ...(options.account === undefined ? {} : { account: options.account }),
    ...(options.expires === undefined ? {} : { expires_at: options.expires }),
  })
  await print(context.terminal, options.json ? JSON.stringify(token) : token.value)
  await note(context.terminal, `space: token ${token.id}; keep the value now, it is not shown again`)
  return undefined
}

async function list(context: CommandContext, options: ListOptions): Promise<undefined> {
  const { account } = options
  const items = await Array.fromAsync((await openClient(context)).tokens.all({ account }))
  const nowMs = Date.now()
  const rows = items.map((token) => [
    token.id,
    token.name,
    token.scopes.join(','),
    renderAge(token.created_at, nowMs),
    renderAge(token.last_used_at, nowMs),
    token.expires_at ?? 'never',
  ])
  const header = ['TOKEN', 'NAME', 'SCOPES', 'AGE', 'USED', 'EXPIRES']
  await print(context.terminal, options.json ? JSON.stringify(items) : renderTable(header, rows))
  return undefined
}

function collectScope(text: string, previous: readonly Scope[] = []): readonly Scope[] {
  if (!isScope(text)) throw new InvalidArgumentError(`Scopes are ${scopes.join(', ')}.`)
  return [...previous, text]
}
