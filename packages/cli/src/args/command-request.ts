import type { CommandRequest } from '@space/sdk'
import type { Command } from 'commander'
import type { Environment } from '../settings/settings.ts'
import { collectEnv } from './pairs.ts'
import { parseSeconds } from './quantities.ts'

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly user?: string
  readonly interactive?: boolean
  readonly timeout?: number
}

/** The options of a command that runs in a sandbox. */
export function addCommandOptions(command: Command, env: Environment): Command {
  return command
    .option('-e, --env <NAME=VALUE>', 'set a variable, or pass on NAME; repeatable', collectEnv(env))
    .option('-w, --cwd <path>', "working directory (default: the user's home)")
    .option('-u, --user <user>', 'run as this user: a name, uid or uid:gid')
    .option('-i, --interactive', 'pass on stdin (default: the command reads /dev/null)')
    .option('--timeout <time>', 'end the command after this long: 30s, 5m, 2h', parseSeconds)
}

/** The request for a command with these options. */
export function commandRequest(argv: readonly string[], options: CommandOptions): CommandRequest {
  return {
    argv: [...argv],
    ...(options.env === undefined ? {} : { env: { ...options.env } }),
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.user === undefined ? {} : { user: options.user }),
    ...(options.timeout === undefined ? {} : { timeout_seconds: options.timeout }),
    ...(options.interactive ? { stdin: 'pipe' } : {}),
  }
}
