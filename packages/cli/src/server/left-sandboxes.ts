import type { CommandContext } from '../context.ts'
import type { Settings } from '../settings/settings.ts'
import { note } from '../terminal/terminal.ts'
import { isSetUp } from './base-snapshot.ts'
import { compose } from './composition.ts'
import { endSandboxes } from './end-sandboxes.ts'
import { openHostMachines } from './host-machines.ts'
import { openLog } from './log.ts'

/**
 * Ends the sandboxes an ended server left running: starts the servers once more, on ports nobody knows, to find and
 * delete them as always. Returns their ids. The caller holds the lock.
 */
export async function endLeftSandboxes(
  context: CommandContext,
  settings: Settings,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (!(await isSetUp(settings))) return []
  await note(context.terminal, 'space: no server is running; looking for sandboxes one left …')
  using serverLog = openLog(settings.home, settings.logLevel)
  const hidden = new URL('http://127.0.0.1:0')
  const quiet = { ...settings, apiUrl: hidden, dataPlaneUrl: hidden, readyMachines: 0 }
  const composition = await compose(quiet, await openHostMachines(settings), serverLog.log)
  try {
    const { token } = await composition.bootstrap()
    return await endSandboxes({ apiUrl: composition.apiUrl, token, signal })
  } finally {
    await composition.shutdown()
  }
}
