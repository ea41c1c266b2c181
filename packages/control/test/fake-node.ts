/** A node that does what a test scripts, behind the true generated client. It holds its state like a real one. */
import { create } from '@bufbuild/protobuf'
import { createClient, createRouterTransport, type ServiceImpl } from '@connectrpc/connect'
import { PublicError } from '@space/contract'
import {
  NodeService,
  type ObservedSandbox,
  ObservedSandbox_State,
  ObservedSandboxSchema,
  type Process,
  Process_State,
  ProcessSchema,
  toConnectError,
} from '@space/contract/node-link'

export const baseDigest = `sha256:${'a'.repeat(64)}`

export class FakeNode {
  readonly sandboxes = new Map<string, ObservedSandbox>()
  readonly processes = new Map<string, Process>()
  readonly calls: string[] = []
  /** Runs inside every call before it does anything: waits, throws, counts. */
  before: (call: string, signal: AbortSignal) => Promise<void> = () => Promise.resolve()
  readonly client = createClient(
    NodeService,
    createRouterTransport((router) => {
      router.service(NodeService, this.#service())
    }),
  )

  /** How often a call was made for a sandbox. */
  count(call: string, sandboxId = ''): number {
    return this.calls.filter((made) => made.startsWith(`${call} ${sandboxId}`)).length
  }

  /** A sandbox as a node observes it, running unless told otherwise. */
  seen(sandboxId: string, change: Partial<ObservedSandbox> = {}): ObservedSandbox {
    const seen = create(ObservedSandboxSchema, {
      sandboxId,
      state: ObservedSandbox_State.RUNNING,
      startedAtUnixMs: BigInt(Date.now()),
      environment: { id: 'fake', machine: 'fake 1', accelerator: 'none', kernel: '6.1.0-fake' },
    })
    return Object.assign(seen, change)
  }

  #service(): ServiceImpl<typeof NodeService> {
    const enter = async (call: string, id: string, context: { readonly signal: AbortSignal }) => {
      this.calls.push(`${call} ${id}`)
      await this.before(call, context.signal)
    }
    return {
      create: async (request, context) => {
        await enter('create', request.sandboxId, context)
        const seen = this.sandboxes.get(request.sandboxId) ?? this.seen(request.sandboxId)
        this.sandboxes.set(request.sandboxId, seen)
        return seen
      },
      delete: async (request, context) => {
        await enter('delete', request.sandboxId, context)
        this.sandboxes.delete(request.sandboxId)
        return {}
      },
      describe: async (_request, context) => {
        await enter('describe', '', context)
        return { sandboxes: [...this.sandboxes.values()] }
      },
      inspect: async (_request, context) => {
        await enter('inspect', '', context)
        return { name: 'fake-node', ready: true }
      },
      createProcess: async (request, context) => {
        await enter('createProcess', request.sandboxId, context)
        this.#need(request.sandboxId)
        const known = this.processes.get(request.processId)
        if (known) return known
        const process = create(ProcessSchema, {
          sandboxId: request.sandboxId,
          processId: request.processId,
          state: Process_State.CREATED,
          createdAtUnixMs: BigInt(Date.now()),
          ...(request.command ? { command: request.command } : {}),
        })
        this.processes.set(process.processId, process)
        return process
      },
      getProcess: async (request, context) => {
        await enter('getProcess', request.sandboxId, context)
        this.#need(request.sandboxId)
        return this.#process(request.sandboxId, request.processId)
      },
      listProcesses: async (request, context) => {
        await enter('listProcesses', request.sandboxId, context)
        this.#need(request.sandboxId)
        const all = [...this.processes.values()]
          .filter((one) => one.sandboxId === request.sandboxId)
          .reverse()
        const from = Number(request.cursor || 0)
        const processes = all.slice(from, from + request.limit)
        const next = from + processes.length
        return { processes, nextCursor: next < all.length ? String(next) : '' }
      },
      signalProcess: async (request, context) => {
        await enter('signalProcess', `${request.sandboxId} ${request.signal} ${request.scope}`, context)
        this.#need(request.sandboxId)
        const process = this.#process(request.sandboxId, request.processId)
        Object.assign(process, {
          state: Process_State.EXITED,
          signal: request.signal,
          reason: 'signalled',
          exitedAtUnixMs: BigInt(Date.now()),
        })
        return process
      },
      listTemplates: async (_request, context) => {
        await enter('listTemplates', '', context)
        return {
          templates: [
            {
              name: 'base',
              tags: ['latest', 'seed:latest'],
              digest: baseDigest,
              sizeBytes: 500_000_000n,
              defaultShape: { vcpus: 1, memoryMib: 1024, diskMib: 8192 },
              createdAtUnixMs: BigInt(Date.UTC(2026, 0, 1)),
            },
          ],
        }
      },
    }
  }

  #need(sandboxId: string): void {
    if (!this.sandboxes.has(sandboxId))
      throw toConnectError(new PublicError('not_found', 'The node holds no such sandbox.'))
  }

  #process(sandboxId: string, processId: string): Process {
    const process = this.processes.get(processId)
    if (process?.sandboxId === sandboxId) return process
    throw toConnectError(new PublicError('not_found', 'There is no such process.'))
  }
}
