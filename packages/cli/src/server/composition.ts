/**
 * Control and node of one machine in one process, knowing each other only by their two contracts. What is begun here
 * is ended in the opposite order; sandboxes outlive it unless they are ended by name.
 */
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { ControlService, NodeService } from '@space/contract/node-link'
import { createControl } from '@space/control'
import { createNode, type GuestImage, type MachineDriver, type TemplateStore } from '@space/node'
import type { Logger } from 'pino'
import type { Settings } from '../settings/settings.ts'
import { cannotListen, listenAddress } from './listeners.ts'
import { memoryClient } from './memory-link.ts'

/** What this host runs sandboxes with. */
export interface HostMachines {
  readonly driver: MachineDriver
  readonly guestImage: GuestImage
  readonly templates: Pick<TemplateStore, 'list' | 'resolve' | 'remove'>
}

export interface Composition {
  /** Where the API answers. */
  readonly apiUrl: string
  readonly dataPlaneUrl: string
  /** A token for the first account that may do everything; the same each time. */
  bootstrap(): Promise<{ readonly token: string }>
  /** Makes the base snapshot of a template's default shape when there is none that can be used. */
  ensureBase(template: string): Promise<void>
  /** Ends the servers; sandboxes go on. */
  release(): Promise<void>
  /** Ends the servers and every machine. */
  shutdown(): Promise<void>
}

/** Starts everything; when it resolves both addresses answer, and what outlived the last server was found again. */
export async function compose(settings: Settings, machines: HostMachines, log: Logger): Promise<Composition> {
  const { journalBytes, journalSeconds, readyMachines } = settings
  const dataPlaneUrl = origin(settings.dataPlaneUrl)
  const node = createNode({
    ...machines,
    home: settings.home,
    controlApi: memoryClient(ControlService, () => control.controlApi),
    log: log.child({ part: 'node' }),
    dataPlaneUrl,
    settings: { journalBytes, journalSeconds, readyMachines },
  })
  const control = await createControl({
    folder: join(settings.home, 'control'),
    apiUrl: origin(settings.apiUrl),
    dataPlaneUrl,
    nodeApi: memoryClient(NodeService, () => node.nodeApi),
    log,
    journalSeconds,
  })
  let ending: Promise<void> | undefined
  const end = (machinesToo: boolean) => {
    ending ??= (async () => {
      await control.close()
      await (machinesToo ? node.shutdown() : node.release())
    })()
    return ending
  }
  try {
    await node.start()
    await listen(node.dataPlane, settings.dataPlaneUrl, 'SPACE_DATA_PLANE_URL')
    await control.start()
    const apiUrl = await listen(control.app, settings.apiUrl, 'SPACE_API_URL')
    return {
      apiUrl,
      dataPlaneUrl,
      bootstrap: () => control.bootstrap(),
      ensureBase: (template) => node.ensureBase(template),
      release: () => end(false),
      shutdown: () => end(true),
    }
  } catch (error) {
    await end(false)
    throw error
  }
}

/** Listens and returns the address clients use, with the true port where any would do. */
async function listen(
  app: {
    listen(options: { host: string; port: number }): Promise<string>
    readonly server: { address(): unknown }
  },
  url: URL,
  variable: string,
): Promise<string> {
  try {
    await app.listen(listenAddress(url))
  } catch (error) {
    throw cannotListen(error, url, variable)
  }
  const bound = new URL(url)
  if (bound.port === '0') bound.port = String((app.server.address() as AddressInfo).port)
  return origin(bound)
}

/** An address without the slash at its end, as it is shown and joined to. */
export function origin(url: URL): string {
  return url.href.replace(/\/+$/, '')
}
