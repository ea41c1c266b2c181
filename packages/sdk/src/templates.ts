import type { Template, TemplatePage } from '@space/contract'
import { address } from './address.ts'
import type { CallOptions, Connection } from './connection.ts'

/** Templates: the starting filesystems. */
export class Templates {
  readonly #at: Connection

  constructor(at: Connection) {
    this.#at = at
  }

  list(options: CallOptions = {}): Promise<TemplatePage> {
    return this.#at.transport.json({
      method: 'GET',
      url: address(this.#at.apiUrl, ['v1', 'templates']),
      signal: options.signal,
    })
  }

  /** By `name`, `name:tag` or digest. */
  get(name: string, options: CallOptions = {}): Promise<Template> {
    return this.#at.transport.json({
      method: 'GET',
      url: address(this.#at.apiUrl, ['v1', 'templates', name]),
      signal: options.signal,
    })
  }
}
