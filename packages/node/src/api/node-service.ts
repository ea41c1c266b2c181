/** The NodeService of proto/node/v1 over this node's sandboxes and processes. */
import type { ServiceImpl } from '@connectrpc/connect'
import { checkCommand, checkEnv, isId, limits, PublicError, toPublicError } from '@space/contract'
import { SignalRequest_Scope } from '@space/contract/guest'
import {
  type CommandSpec,
  type CreateRequest,
  type NodeService,
  SignalProcessRequest_Scope,
  toConnectError,
} from '@space/contract/node-link'
import type { Logger } from 'pino'
import type { Template, TemplateStore } from '../images/template-store.ts'
import type { Environment } from '../machines/machine.ts'
import type { Processes } from '../processes/processes.ts'
import { baseTemplate } from '../sandboxes/base-template.ts'
import { nodeStopping } from '../sandboxes/failures.ts'
import type { Sandboxes } from '../sandboxes/sandboxes.ts'
import type { Bases } from '../snapshots/bases.ts'
import type { ProcessCommand } from '../store/process-rows.ts'
import { environmentMessage, observedSandbox, processMessage } from './observed.ts'

export interface NodeServiceOptions {
  readonly name: string
  readonly dataPlaneUrl: string
  readonly environment: Environment
  readonly kernelRelease: string
  readonly capacity: { readonly vcpus: number; readonly memoryMib: number; readonly diskMib: number }
  readonly sandboxes: Sandboxes
  readonly processes: Processes
  readonly bases: Bases
  readonly templates: Pick<TemplateStore, 'list' | 'resolve'>
  readonly nowMs: () => number
  readonly log: Logger
  readonly ready: () => boolean
}

const scopes: Readonly<Record<number, SignalRequest_Scope>> = {
  [SignalProcessRequest_Scope.UNSPECIFIED]: SignalRequest_Scope.GROUP,
  [SignalProcessRequest_Scope.PROCESS]: SignalRequest_Scope.PROCESS,
  [SignalProcessRequest_Scope.GROUP]: SignalRequest_Scope.GROUP,
  [SignalProcessRequest_Scope.TREE]: SignalRequest_Scope.TREE,
}

/** Answers NodeService. Every failure leaves as a Connect error with an ErrorDetail; what is internal is logged here. */
export function nodeService(options: NodeServiceOptions): ServiceImpl<typeof NodeService> {
  const { sandboxes, processes, environment } = options
  const answer = answering(options.log)
  return {
    create: (request) =>
      answer('create', async () => observedSandbox(await sandboxes.create(newSandbox(request)), environment)),
    delete: ({ sandboxId }) =>
      answer('delete', async () => {
        checkId('sandbox', sandboxId, 'sandbox_id')
        await sandboxes.delete(sandboxId)
        return {}
      }),
    describe: ({ sandboxIds }) =>
      answer('describe', async () => {
        const wanted = sandboxIds.length === 0 ? sandboxes.all() : sandboxIds.map((id) => sandboxes.get(id))
        const found = wanted.filter((sandbox) => sandbox !== undefined)
        return { sandboxes: found.map((sandbox) => observedSandbox(sandbox, environment)) }
      }),
    inspect: () =>
      answer('inspect', async () => ({
        name: options.name,
        environment: environmentMessage(environment, options.kernelRelease),
        dataPlaneUrl: options.dataPlaneUrl,
        capacity: options.capacity,
        ready: options.ready(),
        notReadyReason: options.ready() ? '' : 'starting',
      })),
    createProcess: (request) =>
      answer('createProcess', async () => {
        checkId('process', request.processId, 'process_id')
        const command = toCommand(request.command)
        mustTakeCommands(options.sandboxes, request.sandboxId)
        const { sandboxId, processId, sessionId } = request
        return processMessage(
          processes.create({ sandboxId, processId, sessionId, command, createdAtMs: options.nowMs() }),
        )
      }),
    getProcess: ({ sandboxId, processId }) =>
      answer('getProcess', async () => processMessage(processes.get(sandboxId, processId))),
    listProcesses: ({ sandboxId, limit, cursor }) =>
      answer('listProcesses', async () => {
        const most = Math.min(limit === 0 ? limits.list_default : limit, limits.list_max)
        const page = processes.list(
          sandboxId,
          cursor === '' ? Number.MAX_SAFE_INTEGER : toSequence(cursor),
          most,
        )
        const nextCursor = page.length < most ? '' : String(page.at(-1)?.row.sequence ?? '')
        return { processes: page.map(processMessage), nextCursor }
      }),
    signalProcess: ({ sandboxId, processId, signal, scope }) =>
      answer('signalProcess', async () => {
        if (signal < 1 || signal > 64) throw invalid('signal', 'signal is no Linux signal: 1 to 64 are.')
        return processMessage(
          await processes.signal(sandboxId, processId, signal, scopes[scope] ?? SignalRequest_Scope.GROUP),
        )
      }),
    listTemplates: () =>
      answer('listTemplates', async () => ({
        templates: await Promise.all(
          (await options.templates.list()).map((found) => templateMessage(found, options.bases)),
        ),
      })),
  }
}

/** Runs a call so that whatever it throws leaves as a failure of the catalogue. */
function answering(log: Logger) {
  return async <T>(call: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      const failure = toPublicError(error)
      if (failure.code === 'internal') log.error({ op: call, outcome: 'failed', err: error })
      throw toConnectError(failure)
    }
  }
}

function newSandbox(request: CreateRequest) {
  checkId('sandbox', request.sandboxId, 'sandbox_id')
  if (!/^sha256:[0-9a-f]{64}$/.test(request.templateDigest))
    throw invalid('template_digest', 'template_digest is no digest.')
  checkEnv(request.env)
  const { vcpus = 0, memoryMib = 0, diskMib = 0 } = request.shape ?? {}
  const shape = {
    vcpus: vcpus || limits.default_vcpus,
    memoryMib: memoryMib || limits.default_memory_mib,
    diskMib: Math.min(diskMib, limits.disk_mib),
  }
  return { sandboxId: request.sandboxId, templateDigest: request.templateDigest, shape, env: request.env }
}

function toCommand(spec: CommandSpec | undefined): ProcessCommand {
  if (spec === undefined) throw invalid('command', 'command is missing.')
  const { argv, env, metadata } = spec
  checkCommand({
    argv,
    env,
    metadata,
    ...(spec.cwd === '' ? {} : { cwd: spec.cwd }),
    ...(spec.user === '' ? {} : { user: spec.user }),
  })
  return {
    argv,
    env,
    cwd: spec.cwd,
    user: spec.user,
    stdinPipe: spec.stdinPipe,
    pty: spec.ptyCols > 0 ? { cols: spec.ptyCols, rows: spec.ptyRows } : undefined,
    timeoutMs: Number(spec.timeoutMs),
    keepAwake: spec.keepAwake,
    metadata,
  }
}

/** A sandbox that is made or runs takes commands. */
export function mustTakeCommands(sandboxes: Sandboxes, sandboxId: string): void {
  const kind = sandboxes.get(sandboxId)?.phase.kind
  if (kind === undefined || kind === 'deleting')
    throw new PublicError('not_found', 'There is no such sandbox.')
  if (kind === 'released') throw nodeStopping()
  if (kind === 'failed') {
    throw new PublicError('failed_precondition', 'The sandbox has failed: it runs no more commands.', {
      details: { reason: 'sandbox_failed' },
    })
  }
}

async function templateMessage(template: Template, bases: Bases) {
  const shapes = await bases.shapes(baseTemplate(template))
  const { diskMib } = template
  return {
    name: template.name,
    tags: [...template.tags],
    digest: template.digest,
    sizeBytes: BigInt(template.sizeBytes),
    defaultShape: { ...template.defaultShape, diskMib },
    createdAtUnixMs: BigInt(template.createdAtMs),
    baseSnapshots: shapes.map((shape) => ({ ...shape, diskMib })),
  }
}

function checkId(kind: 'sandbox' | 'process', id: string, field: string): void {
  if (!isId(kind, id)) throw invalid(field, `${field} is no id of SPACE.`)
}

function toSequence(cursor: string): number {
  if (!/^\d{1,15}$/.test(cursor)) throw invalid('cursor', 'cursor is none this node gave.')
  return Number(cursor)
}

function invalid(field: string, message: string): PublicError {
  return new PublicError('invalid_request', message, { details: { field } })
}
