import type { FastifyReply } from 'fastify'

/** Aborts when the client of a request is gone before it was answered. */
export function gone({ raw }: FastifyReply): AbortSignal {
  const over = new AbortController()
  raw.once('close', () => {
    if (!raw.writableFinished) over.abort(new DOMException('the client is gone', 'AbortError'))
  })
  return over.signal
}
