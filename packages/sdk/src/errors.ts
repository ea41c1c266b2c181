/**
 * Every failure a client can meet, as one class: what the server answered (a PublicErrorEnvelope), or what kept the
 * client from getting an answer (status 0).
 */

/** Failures that have no envelope, because no answer of SPACE is behind them. */
export type ClientErrorCode = 'connection_failed' | 'protocol_error' | 'stream_lost' | 'operation_failed'

export interface SpaceErrorFields {
  /** A code of the error catalogue, or a ClientErrorCode. */
  readonly code: string
  readonly message: string
  /** HTTP status; 0 when there was no answer. */
  readonly status: number
  readonly details: Readonly<Record<string, unknown>>
  /** Whether the same request may succeed later without a change. */
  readonly retryable: boolean
  /** Names the request in the server's log; empty when there was no answer. */
  readonly requestId: string
  /** How long the server asked to wait, in milliseconds. */
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

/** The one error this client throws, besides the abort reason of a signal the caller passed. */
export class SpaceError extends Error implements SpaceErrorFields {
  override readonly name = 'SpaceError'
  readonly code: string
  readonly status: number
  readonly details: Readonly<Record<string, unknown>>
  readonly retryable: boolean
  readonly requestId: string
  readonly retryAfterMs: number | undefined

  constructor(fields: SpaceErrorFields) {
    super(fields.message, fields.cause === undefined ? undefined : { cause: fields.cause })
    this.code = fields.code
    this.status = fields.status
    this.details = fields.details
    this.retryable = fields.retryable
    this.requestId = fields.requestId
    this.retryAfterMs = fields.retryAfterMs
  }
}

/** A failure of the client's own side; `retryable` says whether trying again may help. */
export function clientError(
  code: ClientErrorCode,
  message: string,
  retryable: boolean,
  cause?: unknown,
): SpaceError {
  return new SpaceError({ code, message, status: 0, details: {}, retryable, requestId: '', cause })
}

/** What an error answer said beside its body. */
export interface AnswerHead {
  readonly status: number
  readonly requestId: string
  readonly retryAfterMs?: number | undefined
}

/**
 * Turns the body of an error answer into a SpaceError. A body that is no envelope (a proxy's page, an empty answer)
 * becomes an error by its status alone, so that a caller always has a code to look at.
 */
export function fromEnvelope(body: unknown, head: AnswerHead): SpaceError {
  const envelope = isRecord(body) ? body : {}
  const code = typeof envelope['code'] === 'string' ? envelope['code'] : codeOfStatus(head.status)
  const message =
    typeof envelope['message'] === 'string'
      ? envelope['message']
      : `HTTP ${head.status} without an explanation`
  return new SpaceError({
    code,
    message,
    status: head.status,
    details: isRecord(envelope['details']) ? envelope['details'] : {},
    retryable: typeof envelope['retryable'] === 'boolean' ? envelope['retryable'] : isPassing(head.status),
    requestId: typeof envelope['request_id'] === 'string' ? envelope['request_id'] : head.requestId,
    retryAfterMs: head.retryAfterMs,
  })
}

function codeOfStatus(status: number): string {
  switch (status) {
    case 400:
      return 'invalid_request'
    case 401:
      return 'unauthorized'
    case 403:
      return 'forbidden'
    case 404:
      return 'not_found'
    case 409:
      return 'conflict'
    case 429:
      return 'rate_limited'
    default:
      return status >= 500 && status !== 500 ? 'service_unavailable' : 'internal'
  }
}

function isPassing(status: number): boolean {
  return status === 429 || status === 502 || status === 503 || status === 504
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
