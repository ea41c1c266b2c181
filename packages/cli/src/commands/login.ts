import { SpaceClient } from '@space/sdk'
import { type Command, InvalidArgumentError } from 'commander'
import { act } from '../args/action.ts'
import { examples } from '../args/examples.ts'
import type { CommandContext } from '../context.ts'
import { CliFailure, exitCodes } from '../failure.ts'
import { writeConfig } from '../settings/config-file.ts'
import { readSecret } from '../terminal/prompt.ts'
import { note, print } from '../terminal/terminal.ts'

export function addLogin(program: Command, context: CommandContext): void {
  program
    .command('login')
    .argument('<url>', "the API's address, such as http://127.0.0.1:7070", parseUrl)
    .description('Check a token against a SPACE and remember both for every later command.')
    .option('--json', 'print what was remembered, without the token, as JSON')
    .addHelpText(
      'after',
      examples('space login http://127.0.0.1:7070', 'space login https://space.example < token.txt') +
        '\n\nThe token is asked for, read from stdin when that is no terminal, or taken from SPACE_API_TOKEN.',
    )
    .action((url: URL, options: { json?: boolean }) =>
      act(context, options, () => login(context, url, options)),
    )
}

async function login(context: CommandContext, url: URL, options: { json?: boolean }): Promise<undefined> {
  const settings = context.settings()
  const token = settings.token ?? (await readSecret(context.terminal, `Token for ${url.origin}: `))
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new CliFailure('no token was given', {
      exitCode: exitCodes.usage,
      remedy: 'make one with `space token create`',
    })
  const client = new SpaceClient({ apiUrl: url.href, token })
  const version = await client.version()
  await client.sandboxes.list({ limit: 1 })
  await writeConfig(settings.configPath, { apiUrl: url.href, dataPlaneUrl: version.data_plane_url, token })
  const remembered = { api_url: url.href, version: version.version, config: settings.configPath }
  if (options.json) await print(context.terminal, JSON.stringify(remembered))
  else
    await note(
      context.terminal,
      `space: logged in to ${url.href} (SPACE ${version.version}); kept in ${settings.configPath}`,
    )
  return undefined
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new InvalidArgumentError('Write an address such as http://127.0.0.1:7070.')
  return url
}
