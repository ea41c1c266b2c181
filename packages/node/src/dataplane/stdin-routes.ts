/** Into a process: bytes for its stdin, its end, and the size of its terminal. */
import { PtySize, PublicError, ref, StdinAnswer } from '@space/contract'
import { AuthorizeRequest_Action } from '@space/contract/node-link'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { bearerOf } from './bearer.ts'
import type { DataPlaneOptions } from './data-plane.ts'
import { sessionIdOf } from './events-route.ts'
import { gone } from './gone.ts'
import { wakeAndRun } from './wake.ts'

/** Of one request; a longer stream goes in several, with Stdin-Offset. */
const maxStdinBytes = 5 * 2 ** 30

interface SessionRequest {
  Params: { id: string }
}

export function stdinRoutes(app: FastifyInstance, options: DataPlaneOptions): void {
  const { authorizer, processes } = options
  const processOf = async (request: FastifyRequest<SessionRequest>) => {
    const token = bearerOf(request.headers.authorization)
    const sessionId = sessionIdOf(request.params.id)
    return await authorizer.allow(token, { action: AuthorizeRequest_Action.SESSION, sessionId })
  }

  app.post<SessionRequest & { Body: { cols: number; rows: number } }>(
    '/v1/sessions/:id/resize',
    { schema: { body: ref(PtySize) } },
    async (request, reply) => {
      const { sandboxId, processId } = await processOf(request)
      const { cols, rows } = request.body
      const signal = gone(reply)
      await wakeAndRun(options, sandboxId, () => processes.resize(sandboxId, processId, cols, rows, signal))
      return await reply.code(204).send()
    },
  )

  // Raw bytes of any type: a scope of its own, where no parser collects a body.
  app.register((raw, _none, registered) => {
    raw.removeAllContentTypeParsers()
    raw.addContentTypeParser('*', (_request, payload, done) => done(null, payload))

    raw.post<SessionRequest & { Body: AsyncIterable<Uint8Array> | undefined }>(
      '/v1/sessions/:id/stdin',
      { bodyLimit: maxStdinBytes, schema: { response: { 200: ref(StdinAnswer) } } },
      async (request, reply) => {
        const { sandboxId, processId } = await processOf(request)
        const offset = stdinOffset(request.headers['stdin-offset'])
        const stdin = await wakeAndRun(options, sandboxId, () => processes.stdin(sandboxId, processId))
        const next_offset = await stdin.write(offset, limited(request.body), gone(reply))
        return { next_offset }
      },
    )

    raw.post<SessionRequest>('/v1/sessions/:id/stdin/close', async (request, reply) => {
      const { sandboxId, processId } = await processOf(request)
      const stdin = await wakeAndRun(options, sandboxId, () => processes.stdin(sandboxId, processId))
      await stdin.close(gone(reply))
      return await reply.code(204).send()
    })
    registered()
  })
}

function stdinOffset(header: string | string[] | undefined): number | undefined {
  if (header === undefined) return undefined
  const offset = typeof header === 'string' && /^\d{1,16}$/.test(header) ? Number(header) : Number.NaN
  if (Number.isSafeInteger(offset)) return offset
  const message = 'Stdin-Offset is no offset: send the number of bytes written before.'
  throw new PublicError('invalid_request', message, { details: { field: 'Stdin-Offset' } })
}

async function* limited(body: AsyncIterable<Uint8Array> | undefined): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.length
    if (bytes > maxStdinBytes) throw tooLarge()
    yield chunk
  }
}

function tooLarge(): PublicError {
  const message = `The body has more than ${maxStdinBytes} bytes: send the rest with Stdin-Offset.`
  return new PublicError('invalid_request', message, { details: { limit: maxStdinBytes }, status: 413 })
}
