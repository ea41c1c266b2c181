import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ControlService } from '@space/contract/node-link'
import { createNode, loadGuestImage, type SetUpStep, templateStore } from '@space/node'
import type { Settings } from '../settings/settings.ts'
import { openHostMachines } from './host-machines.ts'
import { openLog } from './log.ts'
import { memoryClient } from './memory-link.ts'

/** The template whose base snapshot belongs to the set-up. */
const template = 'base'

/** Whether a set-up got so far that sandboxes may exist. */
export async function isSetUp(settings: Settings): Promise<boolean> {
  const { home } = settings
  const image = await loadGuestImage({ home }).catch(() => undefined)
  return image !== undefined && (await templateStore({ home }).resolve(template)) !== undefined
}

/**
 * The last step of the set-up. It counts as done when there is a snapshot of the default shape; one that this host
 * cannot restore any more is made anew when the node starts to use it.
 */
export function baseSnapshotStep(settings: Settings): Pick<SetUpStep, 'isDone' | 'run'> {
  return {
    isDone: async () => {
      const release = await templateStore({ home: settings.home }).resolve(template)
      if (release === undefined) return false
      const { vcpus, memoryMib } = release.defaultShape
      const manifest = join(release.folder, 'bases', `${vcpus}x${memoryMib}`, 'manifest.json')
      return (await stat(manifest).catch(() => undefined)) !== undefined
    },
    run: async (progress, signal) => {
      progress('booting')
      using serverLog = openLog(settings.home, settings.logLevel)
      const machines = await openHostMachines(settings)
      const node = createNode({
        ...machines,
        home: settings.home,
        controlApi: memoryClient(ControlService, noControl),
        log: serverLog.log.child({ part: 'set-up' }),
        dataPlaneUrl: settings.dataPlaneUrl.href,
      })
      const onAbort = () => void node.release()
      signal.addEventListener('abort', onAbort, { once: true })
      try {
        await node.ensureBase(template)
      } finally {
        signal.removeEventListener('abort', onAbort)
        await node.release()
      }
    },
  }
}

/** A snapshot is made while the machine belongs to nobody: there is nothing to ask of control. */
function noControl(): never {
  throw new TypeError('the set-up has no control plane')
}
