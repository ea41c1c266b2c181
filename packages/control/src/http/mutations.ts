import { PublicError } from '@space/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { fingerprintOf, type KeyedRequest, type Outcome } from '../operations/requests.ts'
import { callerOf } from './caller.ts'
import { idempotencyKeyOf } from './headers.ts'

/** A mutation as far as its idempotency goes. */
export function keyed(request: FastifyRequest): KeyedRequest {
  return {
    accountId: callerOf(request).accountId,
    key: idempotencyKeyOf(request),
    fingerprint: fingerprintOf(request.method, request.url, request.body),
  }
}

/** Sets the headers of an outcome; the body is the route's to send. */
export function setOutcomeHeaders(reply: FastifyReply, outcome: Outcome): void {
  if (outcome.answer.location !== undefined) reply.header('location', outcome.answer.location)
  if (outcome.replayed) reply.header('idempotent-replayed', 'true')
}

/** Refuses a body where none is taken, naming its first field. */
export function refuseBody(request: FastifyRequest): void {
  const { body } = request
  if (body === undefined || body === null) return
  const [field] = typeof body === 'object' ? Object.keys(body) : ['body']
  if (field === undefined) return
  throw new PublicError('invalid_request', `${field.slice(0, 80)} is not a field here: send no body.`, {
    details: { field: field.slice(0, 80) },
  })
}
