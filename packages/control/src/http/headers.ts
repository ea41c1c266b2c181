import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { limits, PublicError } from '@space/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'

const wellFormedId = /^[A-Za-z0-9._-]{1,128}$/

/** The caller's X-Request-Id when it is well-formed, else a new one. */
export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && wellFormedId.test(given)
    ? given
    : `req${randomBytes(12).toString('hex')}`
}

/** The bearer value of the Authorization header. */
export function bearerOf(request: FastifyRequest): string | undefined {
  return /^Bearer +([^ ]+) *$/i.exec(request.headers.authorization ?? '')?.[1]
}

/** The Idempotency-Key, 1 to 255 printable ASCII characters. */
export function idempotencyKeyOf(request: FastifyRequest): string | undefined {
  const key = request.headers['idempotency-key']
  if (key === undefined) return undefined
  if (typeof key === 'string' && /^[\x20-\x7e]+$/.test(key) && key.length <= limits.idempotency_key_bytes)
    return key
  throw new PublicError(
    'invalid_request',
    `Idempotency-Key must be 1 to ${limits.idempotency_key_bytes} printable ASCII characters.`,
    { details: { field: 'Idempotency-Key', limit: limits.idempotency_key_bytes } },
  )
}

/** How long the caller wants to wait for the end of an operation: `Prefer: wait=SECONDS`, at most 60. */
export function preferredWaitSeconds(request: FastifyRequest): number {
  const prefer = request.headers['prefer']
  const preferences = typeof prefer === 'string' ? prefer.split(',') : (prefer ?? [])
  for (const preference of preferences) {
    const seconds = /^\s*wait\s*=\s*"?([0-9]{1,9})"?\s*$/i.exec(preference)?.[1]
    if (seconds !== undefined) return Math.min(Number(seconds), limits.prefer_wait_seconds)
  }
  return 0
}

/** Aborted when the client goes away before its answer: nobody is left to wait for. */
export function clientGone(reply: FastifyReply): AbortSignal {
  const abort = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished)
      abort.abort(new PublicError('service_unavailable', 'The client went away before its answer.'))
  })
  return abort.signal
}
