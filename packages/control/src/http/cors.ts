import type { App } from './api.ts'

const methods = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const requestHeaders = 'Authorization, Content-Type, Idempotency-Key, Prefer, X-Request-Id'
const answerHeaders = 'Location, Retry-After, X-Request-Id, Idempotent-Replayed, Preference-Applied'

/** Lets pages of the listed origins call the API; with an empty list no origin is ever answered. */
export function answerOrigins(app: App, origins: readonly string[]): void {
  if (origins.length === 0) return
  app.addHook('onRequest', async (request, reply) => {
    const { origin } = request.headers
    reply.header('vary', 'origin')
    if (origin === undefined || !origins.includes(origin)) return
    reply.header('access-control-allow-origin', origin)
    reply.header('access-control-expose-headers', answerHeaders)
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return
    reply.header('access-control-allow-methods', methods)
    reply.header('access-control-allow-headers', requestHeaders)
    reply.header('access-control-max-age', '600')
    return reply.code(204).send()
  })
}
