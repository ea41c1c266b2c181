import type { Process, ProcessPage, Session, SessionAnswer, SignalRequest } from '@space/contract'
import { address } from './address.ts'
import type { CallOptions, Connection } from './connection.ts'

import { everyItem, type ListQuery } from './paging.ts'

/** Processes: the programs inside a sandbox. */
export class Processes {
  readonly #at: Connection

  constructor(at: Connection) {
    this.#at = at
  }

  get(sandboxId: string, processId: string, options: CallOptions = {}): Promise<Process> {
    return this.#at.transport.json({
      method: 'GET',
      url: this.#url(sandboxId, processId),
      signal: options.signal,
    })
  }

  /** One page, newest first. */
  list(sandboxId: string, query: ListQuery = {}, options: CallOptions = {}): Promise<ProcessPage> {
    return this.#at.transport.json({
      method: 'GET',
      url: address(this.#at.apiUrl, ['v1', 'sandboxes', sandboxId, 'processes'], { ...query }),
      signal: options.signal,
    })
  }

  /** Every process of a sandbox, page by page. */
  all(sandboxId: string, options: CallOptions = {}): AsyncGenerator<Process, void, void> {
    return everyItem((cursor) => this.list(sandboxId, { limit: 1000, cursor }, options))
  }

  /** SIGKILL to the whole process tree. */
  kill(sandboxId: string, processId: string, options: CallOptions = {}): Promise<Process> {
    return this.#at.transport.json({
      method: 'POST',
      url: this.#url(sandboxId, processId, 'kill'),
      signal: options.signal,
    })
  }

  /** A signal by name or number, by default to the leader's process group. */
  signal(
    sandboxId: string,
    processId: string,
    body: SignalRequest,
    options: CallOptions = {},
  ): Promise<Process> {
    return this.#at.transport.json({
      method: 'POST',
      url: this.#url(sandboxId, processId, 'signal'),
      body,
      signal: options.signal,
    })
  }

  /** A new session for a process that exists: to reconnect, or for a second watcher. */
  async openSession(sandboxId: string, processId: string, options: CallOptions = {}): Promise<Session> {
    const answer = await this.#at.transport.json<SessionAnswer>({
      method: 'POST',
      url: this.#url(sandboxId, processId, 'sessions'),
      signal: options.signal,
    })
    return answer.session
  }

  #url(sandboxId: string, processId: string, ...rest: string[]): string {
    return address(this.#at.apiUrl, ['v1', 'sandboxes', sandboxId, 'processes', processId, ...rest])
  }
}
