/**
 * The error catalogue: each code has one HTTP status, says whether trying again can help, and how long to wait first.
 * Everything that crosses the API's border as a failure is a PublicError; anything else becomes `internal`, its cause
 * going to the log only.
 */
export interface CatalogueRow {
  readonly status: number
  readonly retryable: boolean
  /** Sent as Retry-After when the error is retryable and nothing better is known. */
  readonly retryAfterSeconds: number
}

const final = { retryable: false, retryAfterSeconds: 1 }

export const errorCatalogue = {
  invalid_request: { status: 400, ...final },
  unauthorized: { status: 401, ...final },
  forbidden: { status: 403, ...final },
  not_found: { status: 404, ...final },
  conflict: { status: 409, retryable: true, retryAfterSeconds: 1 },
  idempotency_conflict: { status: 409, ...final },
  failed_precondition: { status: 409, ...final },
  rate_limited: { status: 429, retryable: true, retryAfterSeconds: 1 },
  capacity_unavailable: { status: 503, retryable: true, retryAfterSeconds: 5 },
  service_unavailable: { status: 503, retryable: true, retryAfterSeconds: 2 },
  internal: { status: 500, ...final },
} as const satisfies Record<string, CatalogueRow>

export type ErrorCode = keyof typeof errorCatalogue

export const errorCodes = Object.keys(errorCatalogue) as ErrorCode[]

/** Whether a text is a code of the catalogue. */
export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(errorCatalogue, text)
}

/** Machine-readable extras: `field`, `limit`, `reason` where they apply. */
export type ErrorDetails = Readonly<Record<string, string | number | boolean>>

export interface PublicErrorOptions {
  readonly details?: ErrorDetails
  /** Overrides the catalogue's answer for this occurrence. */
  readonly retryable?: boolean
  readonly retryAfterSeconds?: number
  /** A finer HTTP status for failures of HTTP itself: 405, 413, 415. */
  readonly status?: number
  /** For the log only. */
  readonly cause?: unknown
}

/** A failure whose code, message and details may be shown to the caller as they are. */
export class PublicError extends Error {
  override readonly name = 'PublicError'
  readonly code: ErrorCode
  readonly status: number
  readonly details: ErrorDetails
  readonly retryable: boolean
  readonly retryAfterSeconds: number

  constructor(code: ErrorCode, message: string, options: PublicErrorOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    const row = errorCatalogue[code]
    this.code = code
    this.status = options.status ?? row.status
    this.details = options.details ?? {}
    this.retryable = options.retryable ?? row.retryable
    this.retryAfterSeconds = options.retryAfterSeconds ?? row.retryAfterSeconds
  }
}

/** The envelope a PublicError is sent as; the error of an operation is the same without `request_id`. */
export interface ErrorBody {
  readonly code: ErrorCode
  readonly message: string
  readonly details: ErrorDetails
  readonly retryable: boolean
}

/** What an operation or `last_error` keeps of a failure. */
export function errorBody(error: PublicError): ErrorBody {
  return { code: error.code, message: error.message, details: error.details, retryable: error.retryable }
}

/** Any thrown value as a PublicError: itself, or `internal` with the cause kept for the log. */
export function toPublicError(thrown: unknown): PublicError {
  if (thrown instanceof PublicError) return thrown
  return new PublicError(
    'internal',
    'Something went wrong inside SPACE; the request id finds it in the log.',
    {
      cause: thrown,
    },
  )
}
