import swagger from '@fastify/swagger'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import { components, limits, PublicError } from '@space/contract'
import Fastify from 'fastify'
import type { Api, App } from './api.ts'
import { useJsonBodies } from './body-parser.ts'
import { authorize } from './caller.ts'
import { answerOrigins } from './cors.ts'
import { documentOptions, serveDocument } from './document.ts'
import { envelopeOf, fromFastifyError, sendError } from './errors.ts'
import { requestIdOf } from './headers.ts'
import { logRequests } from './log.ts'
import { answerUnknownPaths } from './not-found.ts'
import { accountRoutes } from './routes/accounts.ts'
import { commandRoutes } from './routes/commands.ts'
import { operationRoutes } from './routes/operations.ts'
import { processRoutes } from './routes/processes.ts'
import { sandboxRoutes } from './routes/sandboxes.ts'
import { serviceRoutes } from './routes/service.ts'
import { templateRoutes } from './routes/templates.ts'
import { tokenRoutes } from './routes/tokens.ts'
import { validationError } from './validation.ts'

/** The API as a Fastify app that is ready to listen; the caller gives it its address. */
export async function createApp(api: Api): Promise<App> {
  const app: App = Fastify({
    logger: false,
    bodyLimit: limits.json_body_bytes,
    forceCloseConnections: true,
    requestTimeout: 120_000,
    genReqId: requestIdOf,
    routerOptions: { maxParamLength: 512 },
    rewriteUrl: (request) => withoutApiPrefix(request.url ?? '/'),
    frameworkErrors: (error, request, reply) => {
      sendError(request, reply, fromFastifyError(error))
    },
    clientErrorHandler: (error, socket) => {
      if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
      else socket.end(unreadableAnswer())
    },
    schemaErrorFormatter: validationError,
    ajv: {
      customOptions: {
        removeAdditional: false,
        coerceTypes: false,
        useDefaults: false,
        allowUnionTypes: true,
        keywords: ['x-incubating'],
      },
    },
  }).withTypeProvider<TypeBoxTypeProvider>()
  useJsonBodies(app)
  for (const schema of components) app.addSchema(schema)
  app.decorateRequest('caller', undefined)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    reply.header('cache-control', 'no-store')
  })
  answerOrigins(app, api.corsOrigins)
  logRequests(app, api.log)
  app.addHook('onRequest', (request) => authorize(request, api.tokens))
  app.setErrorHandler((thrown, request, reply) => {
    const error = fromFastifyError(thrown)
    if (error.code === 'internal')
      api.log.error({ op: 'request', outcome: 'internal', request_id: request.id, err: error.cause ?? error })
    return sendError(request, reply, error)
  })
  await app.register(swagger, documentOptions(api))
  answerUnknownPaths(app)
  serveDocument(app)
  for (const routes of [
    serviceRoutes,
    sandboxRoutes,
    operationRoutes,
    commandRoutes,
    processRoutes,
    templateRoutes,
    tokenRoutes,
    accountRoutes,
  ])
    routes(app, api)
  await app.ready()
  return app
}

/** The whole API is also served under `/api/v1`. */
function withoutApiPrefix(url: string): string {
  return url.startsWith('/api/v1/') ? url.slice('/api'.length) : url
}

/** The answer to bytes that are no HTTP request. */
function unreadableAnswer(): string {
  const requestId = requestIdOf({ headers: {} })
  const error = new PublicError('invalid_request', 'This is not a valid HTTP/1.1 request.')
  const body = JSON.stringify(envelopeOf(error, requestId))
  return [
    'HTTP/1.1 400 Bad Request',
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    'connection: close',
    '',
    body,
  ].join('\r\n')
}
