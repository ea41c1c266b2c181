import { PublicError } from '@space/contract'
import { type Process, SignalProcessRequest_Scope } from '@space/contract/node-link'
import { findProcess } from '../store/processes.ts'
import type { NewProcessRow, SandboxRow } from '../store/schema.ts'
import type { Store } from '../store/store.ts'
import { askNode, type NodeApi } from './node.ts'
import { toProcessRow } from './observed.ts'

const scopes = {
  process: SignalProcessRequest_Scope.PROCESS,
  group: SignalProcessRequest_Scope.GROUP,
  tree: SignalProcessRequest_Scope.TREE,
} as const

export type SignalScope = keyof typeof scopes

/** Processes of a sandbox: the node is asked while it holds them, its last word answers otherwise. */
export class Processes {
  readonly #store: Store
  readonly #nodeApi: NodeApi

  constructor(store: Store, nodeApi: NodeApi) {
    this.#store = store
    this.#nodeApi = nodeApi
  }

  /** A process, as fresh as can be had; `not_found` when neither node nor summary know it. */
  async get(sandbox: SandboxRow, processId: string): Promise<NewProcessRow> {
    const fresh = await this.#ask(sandbox, (options) =>
      this.#nodeApi.getProcess({ sandboxId: sandbox.id, processId }, options),
    )
    if (fresh) return toProcessRow(fresh, sandbox.account_id)
    const summary = await findProcess(this.#store.read, sandbox.id, processId)
    if (summary) return summary
    throw processMissing()
  }

  /** Newest first from the node, with the node's cursor; undefined when the summaries must answer. */
  async list(
    sandbox: SandboxRow,
    limit: number,
    cursor: string,
  ): Promise<{ rows: NewProcessRow[]; nextCursor: string } | undefined> {
    const answer = await this.#ask(sandbox, (options) =>
      this.#nodeApi.listProcesses({ sandboxId: sandbox.id, limit, cursor }, options),
    )
    if (!answer) return undefined
    const rows = answer.processes.map((process) => toProcessRow(process, sandbox.account_id))
    return { rows, nextCursor: answer.nextCursor }
  }

  /** Sends a signal; a process that has ended stays as it is. */
  async signal(
    sandbox: SandboxRow,
    processId: string,
    signal: number,
    scope: SignalScope,
  ): Promise<NewProcessRow> {
    const known = await this.get(sandbox, processId)
    if (known.exited_at !== null) return known
    if (sandbox.state !== 'running')
      throw new PublicError(
        'failed_precondition',
        `The sandbox ${sandbox.id} is ${sandbox.state}, not running.`,
        {
          details: { state: sandbox.state },
        },
      )
    const process: Process = await askNode((options) =>
      this.#nodeApi.signalProcess(
        { sandboxId: sandbox.id, processId, signal, scope: scopes[scope] },
        options,
      ),
    )
    return toProcessRow(process, sandbox.account_id)
  }

  /** The node's answer, or undefined when it does not hold the sandbox or does not answer. */
  async #ask<T>(
    sandbox: SandboxRow,
    call: (options: { readonly timeoutMs: number }) => Promise<T>,
  ): Promise<T | undefined> {
    if (sandbox.state === 'deleted' || sandbox.state === 'creating') return undefined
    try {
      return await askNode(call)
    } catch (thrown) {
      const code = thrown instanceof PublicError ? thrown.code : 'internal'
      if (code === 'not_found' || code === 'service_unavailable' || code === 'failed_precondition')
        return undefined
      throw thrown
    }
  }
}

/** The one answer for a process that does not exist in this sandbox. */
export function processMissing(): PublicError {
  return new PublicError(
    'not_found',
    'There is no such process in this sandbox; GET …/processes lists them.',
    {
      details: { field: 'process' },
    },
  )
}
