import type { Operation, OperationPage } from '@space/contract'
import { address } from './address.ts'
import { backoffMs, sleep } from './backoff.ts'
import type { CallOptions, Connection } from './connection.ts'
import { SpaceError } from './errors.ts'

export interface ListOperationsQuery {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  readonly sandbox?: string | undefined
  readonly state?: string | undefined
  readonly kind?: string | undefined
}

const pollBackoff = { firstMs: 50, maxMs: 1_000 }

/** Operations: the record of one asynchronous change. */
export class Operations {
  readonly #at: Connection

  constructor(at: Connection) {
    this.#at = at
  }

  get(id: string, options: CallOptions = {}): Promise<Operation> {
    return this.#at.transport.json({
      method: 'GET',
      url: address(this.#at.apiUrl, ['v1', 'operations', id]),
      signal: options.signal,
    })
  }

  list(query: ListOperationsQuery = {}, options: CallOptions = {}): Promise<OperationPage> {
    return this.#at.transport.json({
      method: 'GET',
      url: address(this.#at.apiUrl, ['v1', 'operations'], { ...query }),
      signal: options.signal,
    })
  }

  /**
   * Waits until the operation ended and returns it. One that failed is thrown, with the code and message of its own
   * error. There is no limit but the signal: an operation always ends.
   */
  async wait(operation: Operation, options: CallOptions = {}): Promise<Operation> {
    let now = operation
    for (let attempt = 0; now.state === 'pending' || now.state === 'running'; attempt++) {
      await sleep(backoffMs(pollBackoff, attempt, Math.random()), options.signal)
      now = await this.get(operation.id, options)
    }
    if (now.state === 'failed') throw failure(now)
    return now
  }
}

function failure(operation: Operation): SpaceError {
  const error = operation.error
  return new SpaceError({
    code: error?.code ?? 'operation_failed',
    message: error?.message ?? `the ${operation.kind} failed without an explanation`,
    status: 0,
    details: { ...error?.details, operation_id: operation.id },
    retryable: error?.retryable ?? false,
    requestId: '',
  })
}
