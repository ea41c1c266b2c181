import { type CommandRequest, PublicError } from '@space/contract'
import type { Caller } from '../auth/tokens.ts'
import { askNode, type NodeApi } from '../node-link/node.ts'
import { toProcessRow } from '../node-link/observed.ts'
import { putProcess } from '../store/processes.ts'
import type { NewProcessRow, SandboxRow, SessionRow } from '../store/schema.ts'
import { insertSession } from '../store/sessions.ts'
import type { IdSource } from './ids.ts'
import type { Lifecycle } from './lifecycle.ts'

export interface NewCommand {
  readonly process: NewProcessRow
  readonly session: SessionRow
}

/**
 * Records a process on its node, then keeps its summary and its session. A crash in between leaves a process nobody
 * can attach to, which the node withdraws by itself; the same ids again join it.
 */
export async function createCommand(
  lifecycle: Lifecycle,
  nodeApi: NodeApi,
  caller: Caller,
  sandbox: SandboxRow,
  request: CommandRequest,
  ids: IdSource,
): Promise<NewCommand> {
  const [processId, sessionId] = [ids('process'), ids('session')]
  const recorded = await askNode((options) =>
    nodeApi.createProcess(
      { sandboxId: sandbox.id, processId, sessionId, command: toCommandSpec(request) },
      options,
    ),
  ).catch((thrown) => {
    throw whenNodeLacksSandbox(thrown, sandbox)
  })
  const process = toProcessRow(recorded, caller.accountId)
  const session = newSession(lifecycle, caller, sandbox.id, processId, sessionId)
  await lifecycle.store.write(async (db) => {
    await putProcess(db, process)
    await insertSession(db, session)
  })
  return { process, session }
}

/** A further session for a process: to reconnect, or to watch it a second time. */
export function newSession(
  lifecycle: Lifecycle,
  caller: Caller,
  sandboxId: string,
  processId: string,
  id: string,
): SessionRow {
  return {
    id,
    account_id: caller.accountId,
    token_id: caller.tokenId,
    sandbox_id: sandboxId,
    process_id: processId,
    created_at: lifecycle.clock.nowMs(),
    attached_at: null,
  }
}

function toCommandSpec(request: CommandRequest) {
  return {
    argv: request.argv,
    env: request.env ?? {},
    cwd: request.cwd ?? '',
    user: request.user ?? '',
    stdinPipe: request.stdin === 'pipe',
    ptyCols: request.pty?.cols ?? 0,
    ptyRows: request.pty?.rows ?? 0,
    timeoutMs: BigInt(Math.ceil((request.timeout_seconds ?? 0) * 1000)),
    keepAwake: request.keep_awake ?? true,
    metadata: request.metadata ?? {},
  }
}

/** The sandbox exists for the caller, whatever its node says: the node's `not_found` is about the node. */
function whenNodeLacksSandbox(thrown: unknown, sandbox: SandboxRow): unknown {
  if (!(thrown instanceof PublicError) || thrown.code !== 'not_found') return thrown
  return new PublicError(
    'failed_precondition',
    `The sandbox ${sandbox.id} does not run on its node any more.`,
    {
      details: { reason: 'machine_lost' },
      cause: thrown,
    },
  )
}
