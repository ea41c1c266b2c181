import { PublicError } from '@space/contract'
import type { FastifyInstance } from 'fastify'

const decoder = new TextDecoder('utf-8', { fatal: true })

/** JSON is the only body there is; an empty one counts as none, and bytes that are not UTF-8 are refused. */
export function useJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  const parse = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (body.length === 0) {
      done(null, undefined)
      return
    }
    let text: string
    try {
      text = decoder.decode(body as Buffer)
    } catch {
      done(new PublicError('invalid_request', 'The body is not valid UTF-8: correct its encoding.'))
      return
    }
    void parse(request, text, done)
  })
}
