/**
 * Calls of the two addresses, as JSON: authorisation, idempotency keys, retries of what may pass, and every failure as
 * a SpaceError. A mutation is sent with an Idempotency-Key, so that sending it again after a lost answer is safe.
 */
import { backoffMs, sleep } from './backoff.ts'
import { clientError, fromEnvelope, SpaceError } from './errors.ts'

export interface TransportOptions {
  readonly token: string
  readonly fetch: typeof fetch
  /** Attempts of one call, the first included. */
  readonly maxAttempts: number
  /** Longest wait for one attempt's answer, in milliseconds. */
  readonly attemptTimeoutMs: number
}

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly url: string
  /** Sent as JSON when it is not bytes. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Used instead of the client's own token: a session's. */
  readonly token?: string | undefined
  /** Adds to the attempt's timeout what the server was asked to wait, in milliseconds. */
  readonly waitMs?: number | undefined
  /** False for a call that the server does not deduplicate; it is then tried once. */
  readonly repeatable?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

const retryBackoff = { firstMs: 100, maxMs: 5_000 }
const maxRetryAfterMs = 30_000

export class Transport {
  readonly #options: TransportOptions

  constructor(options: TransportOptions) {
    this.#options = options
  }

  /** Calls and returns the parsed JSON body, `undefined` for an empty one. The shape is the contract's, not checked here. */
  async json<T>(call: Call): Promise<T> {
    const keyed = call.method === 'GET' ? call : withIdempotencyKey(call)
    for (let attempt = 1; ; attempt++) {
      try {
        return (await this.#attempt(keyed)) as T
      } catch (error) {
        if (!(error instanceof SpaceError) || !error.retryable) throw error
        if (attempt >= this.#options.maxAttempts || call.repeatable === false) throw error
        const waitMs = error.retryAfterMs ?? backoffMs(retryBackoff, attempt - 1, Math.random())
        await sleep(Math.min(waitMs, maxRetryAfterMs), call.signal)
      }
    }
  }

  async #attempt(call: Call): Promise<unknown> {
    const deadline = AbortSignal.timeout(this.#options.attemptTimeoutMs + (call.waitMs ?? 0))
    const response = await this.open(call, deadline)
    try {
      const text = await response.text()
      return text === '' ? undefined : JSON.parse(text)
    } catch (error) {
      throw asClientError(error, call)
    }
  }

  /** Sends one attempt and returns the answer with its body unread; an error answer is thrown as SpaceError. */
  async open(call: Call, deadline?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = {
      ...call.headers,
      authorization: `Bearer ${call.token ?? this.#options.token}`,
    }
    const isBytes = call.body instanceof Uint8Array
    if (call.body !== undefined)
      headers['content-type'] ??= isBytes ? 'application/octet-stream' : 'application/json'
    const signals = [call.signal, deadline].filter((signal) => signal !== undefined)
    let response: Response
    try {
      response = await this.#options.fetch(call.url, {
        method: call.method,
        headers,
        ...(call.body === undefined
          ? {}
          : { body: isBytes ? (call.body as Uint8Array<ArrayBuffer>) : JSON.stringify(call.body) }),
        ...(signals.length === 0 ? {} : { signal: AbortSignal.any(signals) }),
      })
    } catch (error) {
      throw asClientError(error, call)
    }
    if (response.ok) return response
    throw await errorOf(response)
  }
}

function withIdempotencyKey(call: Call): Call {
  if (call.repeatable === false || call.headers?.['idempotency-key'] !== undefined) return call
  return { ...call, headers: { ...call.headers, 'idempotency-key': newKey() } }
}

/** 128 random bits in hexadecimal. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

async function errorOf(response: Response): Promise<SpaceError> {
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  const head = {
    status: response.status,
    requestId: response.headers.get('x-request-id') ?? '',
    retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : undefined,
  }
  let body: unknown
  try {
    body = JSON.parse(await response.text())
  } catch {
    body = undefined
  }
  return fromEnvelope(body, head)
}

function asClientError(error: unknown, call: Call): unknown {
  if (error instanceof SpaceError) return error
  if (call.signal?.aborted) return call.signal.reason
  const where = new URL(call.url).origin
  if (error instanceof SyntaxError)
    return clientError('protocol_error', `${where} answered with something that is not JSON`, false, error)
  const timedOut = error instanceof Error && error.name === 'TimeoutError'
  return clientError(
    'connection_failed',
    timedOut ? `${where} did not answer in time` : `${where} cannot be reached`,
    true,
    error,
  )
}
