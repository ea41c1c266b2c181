import { SpaceClient } from '@space/sdk'
import { CliFailure } from './failure.ts'
import { readConfig } from './settings/config-file.ts'
import type { Environment, Settings } from './settings/settings.ts'
import type { Terminal } from './terminal/terminal.ts'

/** What every command works with. */
export interface CommandContext {
  readonly terminal: Terminal
  readonly env: Environment
  /** Read on first use, so that help needs no valid settings. */
  settings(): Settings
  /** What the process will exit with. */
  exitCode: number
}

/** A client for the SPACE the variables or the configuration file name; throws with what to do when neither does. */
export async function openClient(context: CommandContext): Promise<SpaceClient> {
  const settings = context.settings()
  const config =
    settings.token !== undefined && settings.apiUrlGiven ? undefined : await readConfig(settings.configPath)
  const token = settings.token ?? config?.token
  if (token === undefined)
    throw new CliFailure('no SPACE is known here yet', {
      code: 'not_configured',
      remedy: 'start one with `npm start` in its clone, or name one with `space login URL`',
    })
  const apiUrl = settings.apiUrlGiven || config === undefined ? settings.apiUrl.href : config.apiUrl
  return new SpaceClient({
    apiUrl,
    token,
    dataPlaneUrl: settings.dataPlaneUrlGiven ? settings.dataPlaneUrl.href : undefined,
  })
}
