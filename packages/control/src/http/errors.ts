import { PublicError, type PublicErrorEnvelope } from '@space/contract'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'

/** The envelope a failure is answered with. */
export function envelopeOf(error: PublicError, requestId: string): PublicErrorEnvelope {
  return {
    code: error.code,
    message: error.message,
    request_id: requestId,
    details: error.details,
    retryable: error.retryable,
  }
}

/** Answers a failure: status, envelope, and Retry-After when trying again can help. */
export function sendError(request: FastifyRequest, reply: FastifyReply, error: PublicError): FastifyReply {
  if (error.retryable) reply.header('retry-after', String(error.retryAfterSeconds))
  if (error.code === 'unauthorized') reply.header('www-authenticate', 'Bearer')
  return reply
    .code(error.status)
    .header('content-type', 'application/json; charset=utf-8')
    .serializer((payload: unknown) => JSON.stringify(payload))
    .send(envelopeOf(error, request.id))
}

/** Any failure of a request as a PublicError; Fastify's own are told apart by their codes. */
export function fromFastifyError(thrown: unknown): PublicError {
  if (thrown instanceof PublicError) return thrown
  const { code, statusCode } = thrown as Partial<FastifyError>
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return tooLarge()
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return refused('The body is not JSON: send `Content-Type: application/json`.', 415)
  if (code === 'FST_ERR_CTP_INVALID_CONTENT_LENGTH')
    return refused('The body is not as long as Content-Length says: send all of it.')
  if (code === 'FST_ERR_CTP_INVALID_JSON_BODY')
    return refused('The body is not valid JSON: check its syntax.')
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return refused('The request could not be understood: check its URL, headers and body.')
  return new PublicError(
    'internal',
    'Something went wrong inside SPACE; the request id finds it in the log.',
    { cause: thrown },
  )
}

function refused(message: string, status?: number): PublicError {
  return new PublicError('invalid_request', message, status === undefined ? {} : { status })
}

function tooLarge(): PublicError {
  return new PublicError('invalid_request', 'The body has more than 1048576 bytes (1 MiB): send less.', {
    status: 413,
    details: { limit: 1_048_576, limit_name: 'json_body_bytes' },
  })
}
