/**
 * The two contracts between control and a node, as generated from `proto/node/v1`, and how a PublicError travels over
 * them: a Connect error whose message is for people and whose one detail is an ErrorDetail.
 */
import { create } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { type ErrorCode, type ErrorDetails, isErrorCode, PublicError } from './errors.ts'
import { type ErrorDetail, ErrorDetailSchema } from './gen/node/v1/node_pb.ts'

export * from './gen/node/v1/node_pb.ts'

const connectCodes = {
  invalid_request: Code.InvalidArgument,
  unauthorized: Code.Unauthenticated,
  forbidden: Code.PermissionDenied,
  not_found: Code.NotFound,
  conflict: Code.Aborted,
  idempotency_conflict: Code.AlreadyExists,
  failed_precondition: Code.FailedPrecondition,
  rate_limited: Code.ResourceExhausted,
  capacity_unavailable: Code.ResourceExhausted,
  service_unavailable: Code.Unavailable,
  internal: Code.Internal,
} as const satisfies Record<ErrorCode, Code>

/** A failure as it is thrown by an implementation of NodeService or ControlService. */
export function toConnectError(error: PublicError): ConnectError {
  const value = errorDetail(error)
  return new ConnectError(error.message, connectCodes[error.code], undefined, [
    { desc: ErrorDetailSchema, value },
  ])
}

/** The ErrorDetail that stands for a PublicError, for messages that carry one as a field. */
export function errorDetail(error: PublicError): ErrorDetail {
  return create(ErrorDetailSchema, {
    code: error.code,
    field: String(error.details['field'] ?? ''),
    reason: String(error.details['reason'] ?? ''),
    retryable: error.retryable,
  })
}

/**
 * What a caller of NodeService or ControlService caught, as a PublicError. Without a detail it says only what the
 * transport knows: not reachable and cut short are retryable `service_unavailable`, the rest is `internal`.
 */
export function fromConnectError(thrown: unknown): PublicError {
  if (thrown instanceof PublicError) return thrown
  const error = ConnectError.from(thrown)
  const [detail] = error.findDetails(ErrorDetailSchema)
  if (detail) return fromErrorDetail(detail, error.rawMessage, thrown)
  switch (error.code) {
    case Code.Unavailable:
    case Code.DeadlineExceeded:
    case Code.Canceled:
    case Code.Aborted:
      return new PublicError('service_unavailable', 'The node did not answer: try again.', {
        cause: thrown,
      })
    case Code.NotFound:
      return new PublicError('not_found', 'The node does not know this object.', { cause: thrown })
    default:
      return new PublicError('internal', 'The node failed; the request id finds the reason in the log.', {
        cause: thrown,
      })
  }
}

/** The PublicError an ErrorDetail stands for. */
export function fromErrorDetail(detail: ErrorDetail, message: string, cause?: unknown): PublicError {
  const details: ErrorDetails = {
    ...(detail.field === '' ? {} : { field: detail.field }),
    ...(detail.reason === '' ? {} : { reason: detail.reason }),
  }
  const code = isErrorCode(detail.code) ? detail.code : 'internal'
  return new PublicError(code, message, { details, retryable: detail.retryable, cause })
}
