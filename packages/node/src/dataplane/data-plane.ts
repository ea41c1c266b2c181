/** The data plane: everything whose bytes come from a sandbox, on a port of its own. */
import { randomUUID } from 'node:crypto'
import type { Client } from '@connectrpc/connect'
import { components, limits, PublicError } from '@space/contract'
import type { ControlService } from '@space/contract/node-link'
import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from 'fastify'
import type { Logger } from 'pino'
import type { Processes } from '../processes/processes.ts'
import type { Sandboxes } from '../sandboxes/sandboxes.ts'
import type { RepeatedRequests } from '../store/repeated-requests.ts'
import type { Authorizer } from './authorizer.ts'
import { sendFailure } from './envelope.ts'
import { eventsRoute } from './events-route.ts'
import { execRoute } from './exec-route.ts'
import { stdinRoutes } from './stdin-routes.ts'

export interface DataPlaneOptions {
  readonly authorizer: Authorizer
  readonly controlApi: Client<typeof ControlService>
  readonly sandboxes: Sandboxes
  readonly processes: Processes
  readonly repeatedRequests: RepeatedRequests
  readonly nowMs: () => number
  readonly log: Logger
}

/** The server, not listening yet. Closing it ends every open stream; their clients come back where they were. */
export function dataPlane(options: DataPlaneOptions): FastifyInstance {
  const closing = new AbortController()
  const app: FastifyInstance = fastify({
    loggerInstance: options.log as FastifyBaseLogger,
    // One line for a unit of work is written where the work is; a request alone is none.
    logController: new LogController({ disableRequestLogging: true }),
    forceCloseConnections: true,
    bodyLimit: limits.json_body_bytes,
    requestIdHeader: false,
    genReqId: ({ headers }) => requestId(headers['x-request-id']),
    // No socket idles out under a quiet process; what is dead is found by keep-alives.
    requestTimeout: 0,
    ajv: { customOptions: { removeAdditional: false, coerceTypes: false, strict: false } },
  })
  for (const schema of components) app.addSchema(schema)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
  })
  app.addHook('preClose', async () => {
    closing.abort()
  })
  app.setErrorHandler(sendFailure)
  app.setNotFoundHandler(async (request, reply) => {
    const missing = new PublicError(
      'not_found',
      `There is no ${request.method} here: check the method and the path.`,
    )
    await sendFailure(missing, request, reply)
  })
  app.get('/healthz', async () => ({ status: 'ok', reason: null }))
  eventsRoute(app, options, closing.signal)
  stdinRoutes(app, options)
  execRoute(app, options)
  return app
}

function requestId(header: string | string[] | undefined): string {
  return typeof header === 'string' && /^[\x21-\x7e]{1,128}$/.test(header) ? header : randomUUID()
}
