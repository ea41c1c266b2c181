import type { CommandContext } from '../context.ts'
import { readConfig, writeConfig } from '../settings/config-file.ts'
import { note } from '../terminal/terminal.ts'

/** Makes this server the one every later command of this user talks to, saying so when that replaces another. */
export async function rememberServer(
  context: CommandContext,
  server: { readonly apiUrl: string; readonly dataPlaneUrl: string },
  token: string,
): Promise<void> {
  const path = context.settings().configPath
  const before = await readConfig(path)
  const { apiUrl, dataPlaneUrl } = server
  if (before?.apiUrl === apiUrl && before.token === token && before.dataPlaneUrl === dataPlaneUrl) return
  if (before !== undefined && before.apiUrl !== apiUrl)
    await note(context.terminal, `space: ${path} now names this SPACE instead of ${before.apiUrl}`)
  await writeConfig(path, { apiUrl, dataPlaneUrl, token })
}
