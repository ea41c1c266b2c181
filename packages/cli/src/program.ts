import { Command, CommanderError } from 'commander'
import about from '../package.json' with { type: 'json' }
import { addAccount } from './commands/account.ts'
import { addCreate } from './commands/create.ts'
import { addDoctor } from './commands/doctor.ts'
import { addDown } from './commands/down.ts'
import { addExec } from './commands/exec.ts'
import { addInspect } from './commands/inspect.ts'
import { addLogin } from './commands/login.ts'
import { addLogs } from './commands/logs.ts'
import { addPs } from './commands/ps.ts'
import { addRm } from './commands/rm.ts'
import { addRun } from './commands/run.ts'
import { addTemplate } from './commands/template.ts'
import { addToken } from './commands/token.ts'
import { addUp } from './commands/up.ts'
import type { CommandContext } from './context.ts'
import { exitCodes } from './failure.ts'
import { readSettings, type Settings } from './settings/settings.ts'
import { processTerminal, type Terminal } from './terminal/terminal.ts'

const exitCodeHelp = `
Exit codes:
  0 done   1 failed   2 wrong usage   3 no such object   4 SPACE not reachable
  run and exec: the command's own code, or 124 … 127 as their help says

Addresses and the token come from the configuration file, which \`space up\` and \`space login\` write;
SPACE_API_URL, SPACE_API_TOKEN and the other variables of docs/configuration.md go before it.`

/** Runs one command line and returns what to exit with. Never throws. */
export async function main(
  argv: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
  terminal: Terminal = processTerminal(),
): Promise<number> {
  let settings: Settings | undefined
  const context: CommandContext = {
    terminal,
    env,
    settings: () => {
      settings ??= readSettings(env)
      return settings
    },
    exitCode: exitCodes.ok,
  }
  try {
    await buildProgram(context).parseAsync([...argv], { from: 'user' })
    return context.exitCode
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return exitCodes.ok
    return argv[0] === 'run' || argv[0] === 'exec' ? exitCodes.spaceFailed : exitCodes.usage
  }
}

/** The whole command line, as commander reads it. */
export function buildProgram(context: CommandContext): Command {
  const program = new Command('space')
    .description('Sandboxes for code you do not trust: microVMs over HTTP.')
    .version(about.version, '-V, --version', 'print the version')
    .exitOverride()
    .enablePositionalOptions()
    .showHelpAfterError('(--help shows the options and examples)')
    .configureOutput({
      writeOut: (text) => context.terminal.stdout.write(text),
      writeErr: (text) => context.terminal.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, 'space: ')),
    })
    .addHelpText('after', exitCodeHelp)
  const adders = [addUp, addDown, addRun, addCreate, addPs, addInspect, addExec, addLogs, addRm]
  for (const add of [...adders, addToken, addAccount, addLogin, addTemplate, addDoctor]) add(program, context)
  return program
}
