import type { ServiceImpl } from '@connectrpc/connect'
import { isId, PublicError, type Scope, toPublicError } from '@space/contract'
import { AuthorizeRequest_Action, type ControlService, toConnectError } from '@space/contract/node-link'
import type { Logger } from 'pino'
import type { Sessions } from '../auth/sessions.ts'
import type { Tokens } from '../auth/tokens.ts'
import { awaitRunning } from '../operations/await-running.ts'
import type { Lifecycle } from '../operations/lifecycle.ts'
import { findSandbox } from '../store/sandboxes.ts'
import type { NodeReports } from './reports.ts'

/** How long a node may rely on an answer: a revoked token ends open streams within this time. */
const validMs = 1000

/** What each action asks for; one that is not here is not served yet and allowed to nobody. */
const scopeOf: Partial<Record<AuthorizeRequest_Action, Scope>> = {
  [AuthorizeRequest_Action.EXEC]: 'commands:run',
}

export interface ControlServiceParts {
  readonly lifecycle: Lifecycle
  readonly tokens: Tokens
  readonly sessions: Sessions
  readonly reports: NodeReports
  readonly log: Logger
}

/** What a node may ask of control. */
export function controlService(parts: ControlServiceParts): ServiceImpl<typeof ControlService> {
  const { lifecycle, reports } = parts
  return {
    authorize: (request) =>
      request.action === AuthorizeRequest_Action.SESSION
        ? authorizeSession(parts, request.token, request.sessionId)
        : authorizeSandbox(parts, request.token, request.action, request.sandboxId),

    ensureRunning: async (request, context) => {
      try {
        await awaitRunning(lifecycle, undefined, request.sandboxId, context.signal)
        return {}
      } catch (thrown) {
        throw toConnectError(toPublicError(thrown))
      }
    },

    report: async (request) => {
      for (const seen of request.sandboxes) await reports.takeSandbox(seen)
      await reports.takeProcesses(request.processes)
      if (request.complete) reports.compareSoon()
      return {}
    },

    secret: () => {
      throw toConnectError(new PublicError('not_found', 'There are no secrets in this version.'))
    },
  }
}

async function authorizeSession(parts: ControlServiceParts, token: string, sessionId: string) {
  const verdict = await parts.sessions.judge(token, sessionId)
  if (!verdict.allowed) return { allowed: false, code: verdict.code, validMs }
  const { session, scopes } = verdict
  return {
    allowed: true,
    accountId: session.account_id,
    scopes: [...scopes],
    sandboxId: session.sandbox_id,
    processId: session.process_id,
    validMs,
  }
}

async function authorizeSandbox(
  parts: ControlServiceParts,
  token: string,
  action: AuthorizeRequest_Action,
  sandboxId: string,
) {
  try {
    const caller = await parts.tokens.authenticate(token)
    const scope = scopeOf[action]
    if (scope === undefined || !caller.scopes.includes(scope))
      return { allowed: false, code: 'forbidden', validMs }
    const row = isId('sandbox', sandboxId)
      ? await findSandbox(parts.lifecycle.store.read, caller.accountId, sandboxId)
      : undefined
    if (!row || row.state === 'deleted') return { allowed: false, code: 'not_found', validMs }
    return { allowed: true, accountId: caller.accountId, scopes: [...caller.scopes], sandboxId, validMs }
  } catch (thrown) {
    const error = toPublicError(thrown)
    if (error.code !== 'unauthorized') throw toConnectError(error)
    return { allowed: false, code: error.code, validMs }
  }
}
