import type { Logger } from 'pino'
import type { App } from './api.ts'

/** One line a request, when it ended: what, by whom, how it went, how long it took. No header or body is in it. */
export function logRequests(app: App, log: Logger): void {
  app.addHook('onResponse', async (request, reply) => {
    const { url } = request.routeOptions
    log.info({
      op: `${request.method} ${url ?? 'unknown'}`,
      outcome: reply.statusCode < 400 ? 'ok' : reply.statusCode < 500 ? 'refused' : 'failed',
      status: reply.statusCode,
      duration_ms: Math.round(reply.elapsedTime * 10) / 10,
      request_id: request.id,
      ...(request.caller ? { account: request.caller.accountId } : {}),
      ...idsOf(request.params),
    })
  })
}

function idsOf(params: unknown): Record<string, string> {
  const { id, process } = params as { id?: string; process?: string }
  return {
    ...(id === undefined ? {} : { id: id.slice(0, 40) }),
    ...(process === undefined ? {} : { process: process.slice(0, 40) }),
  }
}
