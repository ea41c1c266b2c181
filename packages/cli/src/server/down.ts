import type { DownOptions } from '../commands/down.ts'
import type { CommandContext } from '../context.ts'
import { CliFailure } from '../failure.ts'
import type { Settings } from '../settings/settings.ts'
import { confirm } from '../terminal/prompt.ts'
import { signalExitCode, watchInterrupts } from '../terminal/signals.ts'
import { note, print } from '../terminal/terminal.ts'
import { askDown } from './admin-socket.ts'
import { requireServerHost } from './host.ts'
import { type InstanceLock, readInstance, tryLock } from './instance.ts'
import { endLeftSandboxes } from './left-sandboxes.ts'
import { type Purged, purge, sharedFolders } from './purge.ts'

/** How long the serving process may take to end once its sandboxes are gone, and how often to look, in milliseconds. */
const endTimeoutMs = 60_000
const pollMs = 100

/** Ends servers and sandboxes, with `purge` removes everything as well; returns what to exit with. */
export async function down(context: CommandContext, options: DownOptions): Promise<number> {
  requireServerHost('npx space down')
  const settings = context.settings()
  const { terminal } = context
  if (options.purge && !options.yes && terminal.stdin.isTTY && terminal.stderr.isTTY) {
    const question = `This removes every sandbox, template and database below ${settings.home}. Go on?`
    if (!(await confirm(terminal, question))) throw new CliFailure('nothing was done', { code: 'declined' })
  }
  using interrupts = watchInterrupts((signal) => process.exit(signalExitCode(signal)))
  const ended = await endEverything(context, settings, interrupts.signal)
  const purged = options.purge ? await purge(settings, await sharedFolders()) : undefined
  await tell(context, options, ended, purged)
  return 0
}

async function endEverything(
  context: CommandContext,
  settings: Settings,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const lock = await tryLock(settings.home)
  if (lock !== undefined) {
    await using _ = lock
    return await endLeftSandboxes(context, settings, signal)
  }
  const holder = await readInstance(settings.home)
  await note(
    context.terminal,
    `space: ending the sandboxes of the server${holder ? ` (pid ${holder.pid})` : ''} …`,
  )
  const { sandboxes, complete } = await askDown(settings.home, signal)
  await using _ = await lockWhenFree(settings.home, signal)
  return complete ? sandboxes : await endLeftSandboxes(context, settings, signal)
}

async function lockWhenFree(home: string, signal: AbortSignal): Promise<InstanceLock> {
  const deadlineMs = performance.now() + endTimeoutMs
  for (;;) {
    signal.throwIfAborted()
    const lock = await tryLock(home)
    if (lock !== undefined) return lock
    if (performance.now() > deadlineMs)
      throw new CliFailure('the sandboxes are gone, but the serving process does not end', {
        remedy: 'end it by its pid, then run this again',
      })
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}

async function tell(
  context: CommandContext,
  options: DownOptions,
  sandboxes: readonly string[],
  purged: Purged | undefined,
): Promise<void> {
  if (options.json) {
    const { removed, left } = purged ?? { removed: [], left: [] }
    return await print(context.terminal, JSON.stringify({ sandboxes, removed, left }))
  }
  const count = `${sandboxes.length} ${sandboxes.length === 1 ? 'sandbox' : 'sandboxes'}`
  await note(context.terminal, `space: down; ${count} ended`)
  if (purged === undefined) return
  for (const path of purged.removed) await note(context.terminal, `  removed  ${path}`)
  for (const what of purged.left) await note(context.terminal, `  left     ${what}`)
}
