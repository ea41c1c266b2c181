/**
 * `space up`:
 *
 *   lock ─► ports free? ─► set-up, what is missing ─► control + node ─► account, token, configuration file
 *        ─► a first sandbox ─► ready ─► serve … ─► Ctrl-C: servers end, sandboxes go on
 *                                              └─► `space down`: sandboxes end, then the servers
 */
import { setUpSteps } from '@space/node'
import { SpaceClient } from '@space/sdk'
import type { UpOptions } from '../commands/up.ts'
import type { CommandContext } from '../context.ts'
import { Interrupted } from '../failure.ts'
import type { Settings } from '../settings/settings.ts'
import { signalExitCode, watchInterrupts } from '../terminal/signals.ts'
import { note, print } from '../terminal/terminal.ts'
import { type EndedSandboxes, serveAdminSocket } from './admin-socket.ts'
import { baseSnapshotStep } from './base-snapshot.ts'
import { type Composition, compose } from './composition.ts'
import { endSandboxes } from './end-sandboxes.ts'
import { runFirstSandbox } from './first-sandbox.ts'
import { requireServerHost } from './host.ts'
import { openHostMachines } from './host-machines.ts'
import { type InstanceLock, lockOrFail } from './instance.ts'
import { requireFreePorts } from './listeners.ts'
import { openLog } from './log.ts'
import { rememberServer } from './remember.ts'
import { runMissingSteps } from './set-up.ts'

/** Sets up, serves until a signal or `space down`, and returns what to exit with. */
export async function up(context: CommandContext, options: UpOptions): Promise<number> {
  requireServerHost('npm start')
  const settings = context.settings()
  await using lock = await lockOrFail(settings.home)
  if (!options.setupOnly) await requireFreePorts(settings)
  using interrupts = watchInterrupts((signal) => process.exit(signalExitCode(signal)))
  const { signal } = interrupts
  const kernel = settings.kernelPackage === undefined ? {} : { kernelPackage: settings.kernelPackage }
  const steps = setUpSteps({ home: settings.home }, { ...kernel, baseSnapshot: baseSnapshotStep(settings) })
  await runMissingSteps(context, steps, { yes: options.yes, home: settings.home, signal })
  if (options.setupOnly) return 0
  return await serve(context, settings, options, lock, signal)
}

async function serve(
  context: CommandContext,
  settings: Settings,
  options: UpOptions,
  lock: InstanceLock,
  signal: AbortSignal,
): Promise<number> {
  using serverLog = openLog(settings.home, settings.logLevel)
  const composition = await compose(settings, await openHostMachines(settings), serverLog.log)
  let downAsked: (() => void) | undefined
  const down = new Promise<'down'>((resolve) => {
    downAsked = () => resolve('down')
  })
  let end: 'down' | 'signal' = 'signal'
  try {
    const { apiUrl } = composition
    await lock.announce({ pid: process.pid, apiUrl, startedAt: new Date().toISOString() })
    const { token } = await composition.bootstrap()
    const onDown = async (): Promise<EndedSandboxes> => {
      const sandboxes = await endSandboxes({ apiUrl, token })
      downAsked?.()
      return { sandboxes }
    }
    await using _socket = await serveAdminSocket(settings.home, onDown)
    await rememberServer(context, composition, token)
    await composition.ensureBase('base')
    const client = new SpaceClient({ apiUrl, token })
    if (options.first) await runFirstSandbox(context, client, signal)
    await tellReady(context, settings, composition, { json: options.json, logPath: serverLog.path })
    end = await Promise.race([down, untilAborted(signal)])
    if (end === 'signal') await tellEnd(context, client)
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error
  } finally {
    await (end === 'down' ? composition.shutdown() : composition.release())
  }
  return 0
}

async function tellReady(
  context: CommandContext,
  settings: Settings,
  composition: Composition,
  options: { readonly json: boolean | undefined; readonly logPath: string },
): Promise<void> {
  const { apiUrl, dataPlaneUrl } = composition
  const { home, configPath } = settings
  if (options.json) {
    const facts = {
      api_url: apiUrl,
      data_plane_url: dataPlaneUrl,
      home,
      config: configPath,
      log: options.logPath,
    }
    return await print(context.terminal, JSON.stringify(facts))
  }
  const lines = [
    '',
    `SPACE is ready at ${apiUrl} (data plane ${dataPlaneUrl}).`,
    `State is in ${home}, the log in ${options.logPath}, address and token in ${configPath}.`,
    'Ctrl-C ends the servers; sandboxes go on and are found again by the next start. `npx space down` ends all.',
    'In another terminal:',
    '',
    `  npx space run -- python3 -c 'print("hello from a microVM")'`,
    '  npx space create',
    '  npx space ps',
  ]
  await print(context.terminal, lines.join('\n'))
}

/** Says what goes on without the servers; that nobody can be asked any more is no reason not to end. */
async function tellEnd(context: CommandContext, client: SpaceClient): Promise<void> {
  const running: string[] = []
  try {
    const { items } = await client.sandboxes.list(
      { state: 'running' },
      { signal: AbortSignal.timeout(2_000) },
    )
    running.push(...items.map(({ id }) => id))
  } catch (error) {
    await note(context.terminal, `space: the sandboxes could not be counted (${error})`)
  }
  const what =
    running.length === 0
      ? 'no sandbox is running'
      : `${running.length} ${running.length === 1 ? 'sandbox goes' : 'sandboxes go'} on and will be found again by the next start`
  await note(context.terminal, `\nspace: ending the servers; ${what}. \`npx space down\` ends everything.`)
}

function untilAborted(signal: AbortSignal): Promise<'signal'> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve('signal')
    else signal.addEventListener('abort', () => resolve('signal'), { once: true })
  })
}
