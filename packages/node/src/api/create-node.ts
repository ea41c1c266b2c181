/**
 * One node, put together: store, processes, sandboxes, data plane, reports. Nothing here decides anything.
 *
 *   start: adopt what lives ─▶ serve            release: machines go on            shutdown: machines end
 */
import { availableParallelism, hostname, totalmem } from 'node:os'
import type { Client, ServiceImpl } from '@connectrpc/connect'
import { limits, PublicError } from '@space/contract'
import type { ControlService, NodeService } from '@space/contract/node-link'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { Authorizer } from '../dataplane/authorizer.ts'
import { dataPlane } from '../dataplane/data-plane.ts'
import { prune } from '../images/prune.ts'
import type { TemplateStore } from '../images/template-store.ts'
import { journalLimits } from '../journal/index.ts'
import type { GuestImage, MachineDriver, Shape } from '../machines/machine.ts'
import { Processes } from '../processes/processes.ts'
import { baseTemplate } from '../sandboxes/base-template.ts'
import { journalFolder, nodePaths } from '../sandboxes/paths.ts'
import { Sandboxes } from '../sandboxes/sandboxes.ts'
import { Bases } from '../snapshots/bases.ts'
import { openDatabase } from '../store/database.ts'
import { ProcessRows } from '../store/process-rows.ts'
import { RepeatedRequests } from '../store/repeated-requests.ts'
import { nodeService } from './node-service.ts'
import { observedSandbox, processMessage } from './observed.ts'
import { Reporter } from './reporter.ts'

export interface NodeSettings {
  /** Of each process's output; the oldest goes first. */
  readonly journalBytes: number
  /** How long output is kept after the exit. */
  readonly journalSeconds: number
  /** VMM processes of the default shape that wait ahead of a create. */
  readonly readyMachines: number
  readonly createsAtOnce: number
  readonly bootTimeoutMs: number
  readonly restoreTimeoutMs: number
}

export interface NodeOptions {
  /** SPACE_HOME. */
  readonly home: string
  readonly driver: MachineDriver
  readonly guestImage: GuestImage
  readonly templates: Pick<TemplateStore, 'list' | 'resolve' | 'remove'>
  readonly controlApi: Client<typeof ControlService>
  readonly log: Logger
  readonly dataPlaneUrl: string
  readonly name?: string
  readonly nowMs?: () => number
  readonly settings?: Partial<NodeSettings>
}

export interface SpaceNode {
  readonly nodeApi: ServiceImpl<typeof NodeService>
  /** Not listening yet: listen after `start`. */
  readonly dataPlane: FastifyInstance
  /** Adopts what lives, clears what does not, keeps machines ready, begins to report. */
  start(): Promise<void>
  /** Makes the base snapshot of a template's default shape, or the one given, when there is none that can be used. */
  ensureBase(template: string, shape?: Shape): Promise<void>
  /** The node stops, machines go on and are adopted at the next start. */
  release(): Promise<void>
  /** The node stops and ends every machine. */
  shutdown(): Promise<void>
}

export const defaultNodeSettings: NodeSettings = {
  journalBytes: limits.journal_bytes,
  journalSeconds: limits.journal_seconds,
  readyMachines: 2,
  createsAtOnce: Math.max(2, availableParallelism()),
  bootTimeoutMs: 120_000,
  restoreTimeoutMs: 60_000,
}

const sweepEveryMs = 5_000

/** Puts a node together; nothing runs before `start`. */
export function createNode(options: NodeOptions): SpaceNode {
  const { driver, guestImage, templates, controlApi, log, dataPlaneUrl } = options
  const settings = { ...defaultNodeSettings, ...options.settings }
  const nowMs = options.nowMs ?? Date.now
  const name = options.name ?? hostname()
  const paths = nodePaths(options.home)
  const { environment } = driver
  const database = openDatabase(paths.database)
  const repeatedRequests = new RepeatedRequests(database)
  const reporter = new Reporter({
    node: name,
    controlApi,
    log,
    all: () => sandboxes.all().map((sandbox) => observedSandbox(sandbox, environment)),
  })
  const processes = new Processes({
    rows: new ProcessRows(database),
    journalFolder: (sandboxId, processId) => journalFolder(paths, sandboxId, processId),
    guestOf: (sandboxId) => sandboxes.guest(sandboxId),
    nowMs,
    log,
    journal: { ...journalLimits, keepBytes: settings.journalBytes },
    retentionMs: settings.journalSeconds * 1000,
    onChange: (process) => {
      sandboxes.touch(process.row.sandboxId)
      reporter.process(processMessage(process))
    },
  })
  const bases = new Bases({ driver, guestImage, nowMs, log, bootTimeoutMs: settings.bootTimeoutMs })
  const sandboxes: Sandboxes = new Sandboxes({
    paths,
    driver,
    guestImage,
    templates,
    bases,
    processes,
    nowMs,
    log,
    createsAtOnce: settings.createsAtOnce,
    bootTimeoutMs: settings.bootTimeoutMs,
    restoreTimeoutMs: settings.restoreTimeoutMs,
    onChange: (sandbox, gone) => reporter.sandbox(observedSandbox(sandbox, environment, gone)),
  })
  const authorizer = new Authorizer(controlApi)
  const plane = dataPlane({ authorizer, controlApi, sandboxes, processes, repeatedRequests, nowMs, log })
  let ready = false
  let sweep: NodeJS.Timeout | undefined
  let sweeping: Promise<void> = Promise.resolve()
  let stopping: Promise<void> | undefined

  const stop = async (endMachines: boolean): Promise<void> => {
    ready = false
    clearInterval(sweep)
    await plane.close()
    await bases.stop()
    if (endMachines) await sandboxes.shutdown()
    // First, so that a delete under way ends its processes itself, and no exit is recorded behind this.
    await sandboxes.release()
    await processes.release()
    await sweeping
    await reporter.close()
    await driver.stop()
    database.close()
  }

  const sweepNow = async (): Promise<void> => {
    await processes.sweep()
    repeatedRequests.expire(nowMs() - limits.idempotency_seconds * 1000)
  }

  /** What cannot be removed costs room, not the start. */
  const pruneNow = async (): Promise<void> => {
    try {
      const left = await prune({
        home: options.home,
        templates,
        guestImage,
        sandboxes: sandboxes.all().flatMap(({ record }) => record ?? []),
        nowMs: nowMs(),
        onRemoved: (kind, what) => log.info({ op: 'prune', outcome: 'removed', kind, name: what }),
      })
      if (left !== undefined) await bases.prune(left)
    } catch (error) {
      log.warn({ op: 'prune', outcome: 'failed', err: error }, 'what nothing uses could not be removed')
    }
  }

  return {
    nodeApi: nodeService({
      name,
      dataPlaneUrl,
      environment,
      kernelRelease: guestImage.kernelRelease,
      capacity: hostCapacity(),
      sandboxes,
      processes,
      bases,
      templates,
      nowMs,
      log,
      ready: () => ready,
    }),
    dataPlane: plane,
    async start() {
      const releases = await templates.list()
      await bases.clear(releases)
      await sandboxes.start()
      await pruneNow()
      ready = true
      reporter.start()
      sweep = setInterval(() => {
        sweeping = sweeping
          .then(sweepNow)
          .catch((error: unknown) => log.error({ err: error }, 'a sweep failed'))
      }, sweepEveryMs)
      sweep.unref()
      if (settings.readyMachines > 0) {
        const shape = { vcpus: limits.default_vcpus, memoryMib: limits.default_memory_mib }
        await driver.keepReady(shape, settings.readyMachines)
      }
    },
    async ensureBase(reference, shape) {
      const template = await templates.resolve(reference)
      if (template === undefined) throw new PublicError('not_found', `There is no template ${reference}.`)
      await bases.ensure(baseTemplate(template), shape ?? template.defaultShape)
    },
    release() {
      stopping ??= stop(false)
      return stopping
    },
    shutdown() {
      stopping ??= stop(true)
      return stopping
    },
  }
}

function hostCapacity() {
  return { vcpus: availableParallelism(), memoryMib: Math.floor(totalmem() / 2 ** 20), diskMib: 0 }
}
