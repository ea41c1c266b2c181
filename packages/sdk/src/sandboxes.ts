import type {
  CreateSandboxRequest,
  Operation,
  Sandbox,
  SandboxPage,
  UpdateSandboxRequest,
} from '@space/contract'
import { address } from './address.ts'
import type { CallOptions, Connection } from './connection.ts'
import { everyItem } from './paging.ts'

export interface CreateSandboxOptions extends CallOptions {
  /** Lets the server hold its answer until the sandbox runs or failed, at most 60 s. */
  readonly waitSeconds?: number | undefined
  readonly idempotencyKey?: string | undefined
}

export interface ListSandboxesQuery {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  readonly state?: string | undefined
  readonly template?: string | undefined
  readonly metadata?: Readonly<Record<string, string>> | undefined
}

/** Sandboxes: one microVM each, with its own filesystem and lifecycle. */
export class Sandboxes {
  readonly #at: Connection

  constructor(at: Connection) {
    this.#at = at
  }

  /** Asks for a sandbox. It runs once the operation succeeded; a command may be created at once, it waits. */
  create(
    body: CreateSandboxRequest,
    options: CreateSandboxOptions = {},
  ): Promise<{ sandbox: Sandbox; operation: Operation }> {
    const headers: Record<string, string> = {}
    if (options.waitSeconds !== undefined) headers['prefer'] = `wait=${options.waitSeconds}`
    if (options.idempotencyKey !== undefined) headers['idempotency-key'] = options.idempotencyKey
    return this.#at.transport.json({
      method: 'POST',
      url: this.#url(),
      body,
      headers,
      waitMs: (options.waitSeconds ?? 0) * 1000,
      signal: options.signal,
    })
  }

  get(id: string, options: CallOptions = {}): Promise<Sandbox> {
    return this.#at.transport.json({ method: 'GET', url: this.#url(id), signal: options.signal })
  }

  /** One page, newest first. */
  list(query: ListSandboxesQuery = {}, options: CallOptions = {}): Promise<SandboxPage> {
    const { metadata = {}, ...rest } = query
    const filters = Object.entries(metadata).map(([key, value]) => [`metadata.${key}`, value])
    return this.#at.transport.json({
      method: 'GET',
      url: address(this.#at.apiUrl, ['v1', 'sandboxes'], { ...rest, ...Object.fromEntries(filters) }),
      signal: options.signal,
    })
  }

  /** Every sandbox that fits, page by page. */
  all(query: ListSandboxesQuery = {}, options: CallOptions = {}): AsyncGenerator<Sandbox, void, void> {
    return everyItem((cursor) => this.list({ ...query, cursor }, options), query.cursor)
  }

  update(id: string, body: UpdateSandboxRequest, options: CallOptions = {}): Promise<Sandbox> {
    return this.#at.transport.json({ method: 'PATCH', url: this.#url(id), body, signal: options.signal })
  }

  /** Asks for the end of a sandbox; deleting a deleted one succeeds too. */
  delete(id: string, options: CreateSandboxOptions = {}): Promise<{ operation: Operation }> {
    const headers: Record<string, string> = {}
    if (options.waitSeconds !== undefined) headers['prefer'] = `wait=${options.waitSeconds}`
    return this.#at.transport.json({
      method: 'DELETE',
      url: this.#url(id),
      headers,
      waitMs: (options.waitSeconds ?? 0) * 1000,
      signal: options.signal,
    })
  }

  #url(...rest: string[]): string {
    return address(this.#at.apiUrl, ['v1', 'sandboxes', ...rest])
  }
}
