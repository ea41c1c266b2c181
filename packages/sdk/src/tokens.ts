import type {
  Account,
  AccountPage,
  CreateAccountRequest,
  CreatedToken,
  CreateTokenRequest,
  TokenPage,
} from '@space/contract'
import { address } from './address.ts'
import type { CallOptions, Connection } from './connection.ts'

/** Tokens: who may call. The value is in the answer of `create` alone. */
export class Tokens {
  readonly #at: Connection

  constructor(at: Connection) {
    this.#at = at
  }

  create(body: CreateTokenRequest, options: CallOptions = {}): Promise<CreatedToken> {
    return this.#at.transport.json({ method: 'POST', url: this.#url(), body, signal: options.signal })
  }

  list(options: CallOptions = {}): Promise<TokenPage> {
    return this.#at.transport.json({ method: 'GET', url: this.#url(), signal: options.signal })
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

  list(options: CallOptions = {}): Promise<AccountPage> {
    return this.#at.transport.json({ method: 'GET', url: this.#url(), signal: options.signal })
  }

  #url(): string {
    return address(this.#at.apiUrl, ['v1', 'accounts'])
  }
}
