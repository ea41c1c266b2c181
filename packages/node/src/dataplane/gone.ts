import type { FastifyRequest } from 'fastify'

/** Aborts when the client of a request is gone before it is answered. */
export function gone(request: FastifyRequest): AbortSignal {
  const over = new AbortController()
  const { socket } = request.raw
  const end = () => over.abort(new DOMException('the client is gone', 'AbortError'))
  if (socket.destroyed) end()
  else socket.once('close', end)
  return over.signal
}
