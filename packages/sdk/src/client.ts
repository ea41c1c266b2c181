import type { LimitName, Version } from '@space/contract'
import { address } from './address.ts'
import { Commands } from './commands.ts'
import type { CallOptions, Connection } from './connection.ts'
import { Operations } from './operations.ts'
import { Processes } from './processes.ts'
import { Sandboxes } from './sandboxes.ts'
import { Templates } from './templates.ts'
import { Accounts, Tokens } from './tokens.ts'
import { Transport } from './transport.ts'

export interface SpaceClientOptions {
  readonly apiUrl: string
  readonly token: string
  /** By default what each sandbox says about itself. */
  readonly dataPlaneUrl?: string | undefined
  readonly fetch?: typeof fetch | undefined
  /** Attempts of one call, the first included. */
  readonly maxAttempts?: number | undefined
  /** Longest wait for one attempt's answer, in milliseconds. */
  readonly attemptTimeoutMs?: number | undefined
}

/** How many sandboxes' data plane addresses are remembered; the oldest is asked for again. */
const maxKnownAddresses = 1_000

/** A client of one SPACE. It holds no connection of its own and needs no closing. */
export class SpaceClient {
  readonly sandboxes: Sandboxes
  readonly operations: Operations
  readonly commands: Commands
  readonly processes: Processes
  readonly templates: Templates
  readonly tokens: Tokens
  readonly accounts: Accounts
  readonly #at: Connection

  constructor(options: SpaceClientOptions) {
    const transport = new Transport({
      token: options.token,
      fetch: options.fetch ?? ((input, init) => fetch(input, init)),
      maxAttempts: options.maxAttempts ?? 4,
      attemptTimeoutMs: options.attemptTimeoutMs ?? 30_000,
    })
    const known = new Map<string, string>()
    this.#at = {
      apiUrl: options.apiUrl,
      transport,
      dataPlaneUrl: async (sandboxId, signal) => {
        const url = options.dataPlaneUrl ?? known.get(sandboxId)
        if (url !== undefined) return url
        const sandbox = await this.sandboxes.get(sandboxId, { signal })
        const oldest = known.keys().next()
        if (known.size >= maxKnownAddresses && oldest.value !== undefined) known.delete(oldest.value)
        known.set(sandboxId, sandbox.urls.data_plane)
        return sandbox.urls.data_plane
      },
    }
    this.sandboxes = new Sandboxes(this.#at)
    this.operations = new Operations(this.#at)
    this.commands = new Commands(this.#at)
    this.processes = new Processes(this.#at)
    this.templates = new Templates(this.#at)
    this.tokens = new Tokens(this.#at)
    this.accounts = new Accounts(this.#at)
  }

  /** Every limit of this SPACE, by name. */
  limits(options: CallOptions = {}): Promise<Readonly<Record<LimitName, number>>> {
    return this.#get('limits', options)
  }

  version(options: CallOptions = {}): Promise<Version> {
    return this.#get('version', options)
  }

  #get<T>(what: string, options: CallOptions): Promise<T> {
    return this.#at.transport.json({
      method: 'GET',
      url: address(this.#at.apiUrl, ['v1', what]),
      signal: options.signal,
    })
  }
}
