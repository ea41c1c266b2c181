import { type Template, templateStore } from '@space/node'
import type { CommandContext } from '../context.ts'
import { progressView } from '../render/progress.ts'
import { signalExitCode, watchInterrupts } from '../terminal/signals.ts'
import { requireServerHost } from './host.ts'

/** Builds a template from its recipe on this machine; a serving process finds the new release by itself. */
export async function rebuildTemplate(context: CommandContext, name: string): Promise<Template> {
  requireServerHost(`npx space template rebuild ${name}`)
  using interrupts = watchInterrupts((signal) => process.exit(signalExitCode(signal)))
  using view = progressView(context.terminal)
  view.begin(name, `Make the template ${name}`)
  const store = templateStore({ home: context.settings().home })
  const release = await store.rebuild(
    name,
    (message, fraction) => view.update(name, message, fraction),
    interrupts.signal,
  )
  view.end(name, 'done')
  return release
}
