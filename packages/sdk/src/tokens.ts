import type {
  Account,
  AccountPage,
  CreateAccountRequest,
  CreatedToken,
  CreateTokenRequest,
  Token,
  TokenPage,
} from '@space/contract'
import { address } from './address.ts'
import type { CallOptions, Connection } from './connection.ts'
import { everyItem, type ListQuery } from './paging.ts'

export interface ListTokensQuery extends ListQuery {
  readonly account?: string | undefined
}

/** Tokens: who may call. The value is in the answer of `create` alone. */
export class Tokens {
  readonly #at: Connection

  constructor(at: Connection) {
    this.#at = at
  }

  create(body: CreateTokenRequest, options: CallOptions = {}): Promise<CreatedToken> {
    return this.#at.transport.json({ method: 'POST', url: this.#url(), body, signal: options.signal })
  }

  /** One page of your own account's, or of the one given, newest first. */
  list(query: ListTokensQuery = {}, options: CallOptions = {}): Promise<TokenPage> {
    const url = address(this.#at.apiUrl, ['v1', 'tokens'], { ...query })
    return this.#at.transport.json({ method: 'GET', url, signal: options.signal })
  }

  /** All of them, page by page. */
  all(query: ListTokensQuery = {}, options: CallOptions = {}): AsyncGenerator<Token, void, void> {
    return everyItem((cursor) => this.list({ limit: 1000, ...query, cursor }, options), query.cursor)
  }

  /** The token fails from the next call on. */
  async revoke(id: string, options: CallOptions = {}): Promise<void> {
    await this.#at.transport.json({ method: 'DELETE', url: this.#url(id), signal: options.signal })
  }

  #url(...rest: string[]): string {
    return address(this.#at.apiUrl, ['v1', 'tokens', ...rest])
  }
}

/** Accounts: whom tokens and sandboxes belong to. */
export class Accounts {
  readonly #at: Connection

  constructor(at: Connection) {
    this.#at = at
  }

  create(body: CreateAccountRequest, options: CallOptions = {}): Promise<Account> {
    return this.#at.transport.json({ method: 'POST', url: this.#url(), body, signal: options.signal })
  }

  /** One page, newest first. */
  list(query: ListQuery = {}, options: CallOptions = {}): Promise<AccountPage> {
    const url = address(this.#at.apiUrl, ['v1', 'accounts'], { ...query })
    return this.#at.transport.json({ method: 'GET', url, signal: options.signal })
  }

  /** All of them, page by page. */
  all(options: CallOptions = {}): AsyncGenerator<Account, void, void> {
    return everyItem((cursor) => this.list({ limit: 1000, cursor }, options))
  }

  #url(): string {
    return address(this.#at.apiUrl, ['v1', 'accounts'])
  }
}
