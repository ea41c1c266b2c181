/** Failures of the data plane as they are sent: the catalogue's envelope, its status, Retry-After where it may help. */
import { errorBody, PublicError, toPublicError } from '@space/contract'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'

/** Answers a failed request. What is internal goes to the log with the request id and shows nothing of itself. */
export async function sendFailure(
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const failure = failureOf(thrown)
  if (failure.code === 'internal')
    request.log.error({ err: thrown, request_id: request.id }, 'request failed')
  if (failure.retryable) reply.header('retry-after', String(failure.retryAfterSeconds))
  await reply.code(failure.status).send({ ...errorBody(failure), request_id: request.id })
}

function failureOf(thrown: unknown): PublicError {
  if (thrown instanceof PublicError || !isFastifyError(thrown)) return toPublicError(thrown)
  const [problem] = thrown.validation ?? []
  if (problem !== undefined) return invalidBody(thrown.validationContext ?? 'body', problem)
  const status = thrown.statusCode ?? 500
  if (status < 400 || status >= 500) return toPublicError(thrown)
  return new PublicError('invalid_request', httpProblem(status), { status, cause: thrown })
}

function isFastifyError(thrown: unknown): thrown is FastifyError {
  return thrown instanceof Error && ('validation' in thrown || 'statusCode' in thrown)
}

function invalidBody(where: string, problem: NonNullable<FastifyError['validation']>[number]): PublicError {
  const path = problem.instancePath.slice(1).replaceAll('/', '.')
  const unknown = problem.params['additionalProperty']
  const missing = problem.params['missingProperty']
  const name = typeof unknown === 'string' ? unknown : typeof missing === 'string' ? missing : undefined
  const field = [path, name].filter(Boolean).join('.') || where
  const message =
    typeof unknown === 'string'
      ? `${field} is no field of this request: leave it out.`
      : `${field} ${problem.message ?? 'is not valid'}.`
  return new PublicError('invalid_request', message, { details: { field } })
}

function httpProblem(status: number): string {
  if (status === 413) return 'The body is larger than this endpoint takes.'
  if (status === 415) return 'The body has a content type this endpoint does not take: send application/json.'
  return 'The request could not be read: check its syntax and headers.'
}
