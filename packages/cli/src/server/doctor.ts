import { type Check, hostChecks } from '@space/node'
import type { CommandContext } from '../context.ts'
import { exitCodes } from '../failure.ts'
import { visible } from '../render/text.ts'
import { note, print } from '../terminal/terminal.ts'

/** Checks this machine, with `fix` after running what can be run; returns what to exit with. */
export async function doctor(
  context: CommandContext,
  options: { readonly fix?: boolean; readonly json?: boolean },
): Promise<number> {
  let checks = await check(context)
  if (options.fix) {
    for (const { title, status, fix } of checks) {
      if (status === 'ok' || fix === undefined) continue
      await note(context.terminal, `· ${title}: fixing`)
      try {
        await fix()
      } catch (error) {
        await note(context.terminal, `✗ ${title}: ${error instanceof Error ? error.message : error}`)
      }
    }
    checks = await check(context)
  }
  if (options.json)
    await print(
      context.terminal,
      JSON.stringify(checks.map(({ fix, ...rest }) => ({ ...rest, fixable: fix !== undefined }))),
    )
  else for (const line of renderChecks(checks)) await print(context.terminal, line)
  return checks.some((one) => one.status === 'fail') ? exitCodes.failed : exitCodes.ok
}

/** One line a check, the remedy under it. */
export function renderChecks(
  checks: readonly Pick<Check, 'title' | 'status' | 'detail' | 'remedy'>[],
): string[] {
  const width = Math.max(...checks.map((one) => one.title.length))
  const marks = { ok: '✓', warn: '!', fail: '✗' } as const
  return checks.flatMap(({ title, status, detail, remedy }) => [
    `${marks[status]} ${title.padEnd(width)}  ${visible(detail)}`,
    ...(status === 'ok' || remedy === undefined ? [] : [`    → ${remedy}`]),
  ])
}

async function check(context: CommandContext): Promise<Check[]> {
  const { home, apiUrl, dataPlaneUrl, machine } = context.settings()
  const addresses = { apiUrl: apiUrl.href, dataPlaneUrl: dataPlaneUrl.href }
  return await hostChecks({ home }, { ...addresses, ...(machine === undefined ? {} : { machine }) })
}
