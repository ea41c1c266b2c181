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
import { CliFailure } from '../failure.ts'
import { showLong } from '../render/progress.ts'
import type { Settings } from '../settings/settings.ts'
import { signalExitCode, watchInterrupts } from '../terminal/signals.ts'
import { note, print } from '../terminal/terminal.ts'
import { serveAdminSocket } from './admin-socket.ts'
import { baseSnapshotStep } from './base-snapshot.ts'
import { type Composition, compose, origin } from './composition.ts'
import { EndRequest } from './end-request.ts'
import { endSandboxes } from './end-sandboxes.ts'
import { runFirstSandbox } from './first-sandbox.ts'
import { requireServerHost } from './host.ts'
import { openHostMachines } from './host-machines.ts'
import { lockOrFail } from './instance.ts'
import { requireFreePorts } from './listeners.ts'
import { openLog } from './log.ts'
import { rememberServer } from './remember.ts'
import { runMissingSteps } from './set-up.ts'

/** Sets up, serves until a signal or `space down`, and returns what to exit with. */
export async function up(context: CommandContext, options: UpOptions): Promise<number> {
  requireServerHost('npm start')
  const settings = context.settings()
  await using lock = await lockOrFail(settings.home)
  await lock.announce({
    pid: process.pid,
    apiUrl: origin(settings.apiUrl),
    startedAt: new Date().toISOString(),
  })
  if (!options.setupOnly) await requireFreePorts(settings)
  using interrupts = watchInterrupts((signal) => process.exit(signalExitCode(signal)))
  const end = new EndRequest()
  const signal = AbortSignal.any([interrupts.signal, end.beforeServing])
  await using _socket = await serveAdminSocket(settings.home, () => end.ask())
  const kernel = settings.kernelPackage === undefined ? {} : { kernelPackage: settings.kernelPackage }
  const steps = setUpSteps({ home: settings.home }, { ...kernel, baseSnapshot: baseSnapshotStep(settings) })
  await runMissingSteps(context, steps, { yes: options.yes, home: settings.home, signal })
  if (options.setupOnly) return 0
  return await serve(context, settings, options, end, signal)
}

async function serve(
  context: CommandContext,
  settings: Settings,
  options: UpOptions,
  request: EndRequest,
  signal: AbortSignal,
): Promise<number> {
  using serverLog = openLog(settings.home, settings.logLevel)
  const composition = await compose(settings, await openHostMachines(settings), serverLog.log)
  let endMachines = false
  try {
    const { apiUrl } = composition
    const { token } = await composition.bootstrap()
    const down = request.serve(() => endSandboxes({ apiUrl, token }))
    const end = Promise.race([
      down.then(() => 'down' as const),
      untilAborted(signal).then(() => 'signal' as const),
    ])
    await rememberServer(context, composition, token)
    const client = new SpaceClient({ apiUrl, token })
    const base = showLong(
      context.terminal,
      'Boot `base` and keep its memory anew, as this host needs it',
      composition.ensureBase('base'),
    ).catch((error: unknown) => note(context.terminal, `space: ${noBase(error)}`))
    if ((await Promise.race([end, base])) === undefined) {
      if (options.first) await firstSandbox(context, client, { end, signal, logPath: serverLog.path })
      if (!signal.aborted)
        await tellReady(context, settings, composition, { json: options.json, logPath: serverLog.path })
    }
    endMachines = (await end) === 'down'
    if (!endMachines) await tellEnd(context, client)
    return 0
  } finally {
    await (endMachines ? composition.shutdown() : composition.release())
  }
}

function noBase(error: unknown): string {
  const why = error instanceof Error ? error.message : String(error)
  return `no base snapshot could be made (${why}); until the next start each create boots, which takes longer`
}

/** The end may come in the middle of it: then only its clearing up counts. */
async function firstSandbox(
  context: CommandContext,
  client: SpaceClient,
  { end, signal, logPath }: { end: Promise<unknown>; signal: AbortSignal; logPath: string },
): Promise<void> {
  let ending = false
  const noteEnd = () => {
    ending = true
  }
  end.then(noteEnd, noteEnd)
  try {
    await runFirstSandbox(context, client, signal)
  } catch (error) {
    if (ending) return
    const why = error instanceof Error ? error.message : String(error)
    throw new CliFailure(`the first sandbox failed: ${why}`, {
      code: 'first_sandbox_failed',
      remedy: `\`npx space doctor\` checks this machine; the reason is in ${logPath}`,
      cause: error,
    })
  }
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

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
