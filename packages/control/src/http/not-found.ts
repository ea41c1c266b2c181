import { PublicError } from '@space/contract'
import type { App } from './api.ts'
import { sendError } from './errors.ts'

/** Tells a path that does not exist from one that takes other methods. */
export function answerUnknownPaths(app: App): void {
  const known: { readonly path: RegExp; readonly method: string }[] = []
  app.addHook('onRoute', ({ url, method }) => {
    const path = new RegExp(`^${url.replaceAll('.', '\\.').replaceAll(/:[a-z]+/gi, '[^/]+')}$`)
    for (const one of [method].flat()) known.push({ path, method: one })
  })
  app.setNotFoundHandler((request, reply) => {
    const [path = '/'] = request.url.split('?')
    const methods = new Set(known.filter((route) => route.path.test(path)).map((route) => route.method))
    if (methods.size === 0)
      return sendError(
        request,
        reply,
        new PublicError('not_found', 'There is no such endpoint: /openapi-m1.json lists them all.'),
      )
    const allowed = [...methods].sort().join(', ')
    reply.header('allow', allowed)
    return sendError(
      request,
      reply,
      new PublicError('invalid_request', `This path takes ${allowed}, not ${request.method}.`, {
        status: 405,
      }),
    )
  })
}
