/**
 * Control and node of one machine in one process, knowing each other only by their two contracts. What is begun here
 * is ended in the opposite order; sandboxes outlive it unless they are ended by name.
 */
import { ControlService, NodeService } from '@space/contract/node-link'
import { createControl } from '@space/control'
import { createNode, loadGuestImage, loadHostFacts, type MachineDriver, qemuDriver, templateStore } from '@space/node'
import type { Logger } from 'pino'
import type { Settings } from '../settings/settings.ts'
import { cannotListen, listenAddress } from './listeners.ts'
import { memoryClient } from './memory-link.ts'

export interface Composition {
  readonly apiUrl: string
  readonly dataPlaneUrl: string
  /** An account with a token for it that may do everything, the same each time. */
  bootstrap(): Promise<{ readonly account: string; readonly token: string }>
  /** Boots a template's default shape once and keeps its memory, where that is still to do. */
  prepareBase(signal: AbortSignal): Promise<void>
  /** Ends the servers; sandboxes go on. */
  release(): Promise<void>
  /** Ends the servers and every machine. */
  shutdown(): Promise<void>
}

export interface CompositionOptions {
  readonly settings: Settings
  readonly log: Logger
  /** Used instead of the VMM of this host: a test's. */
  readonly driver?: MachineDriver
}

/** Starts everything; when it resolves both addresses answer. */
export async function compose(options: CompositionOptions): Promise<Composition> {
  throw new Error(String(options))
}
