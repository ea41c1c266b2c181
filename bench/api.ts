/**
 * The smallest client of the public API: HTTP/1.1 with connections kept alive, and a reader of event streams that
 * decodes what it gets and counts. Not the SDK, so that what is measured is the servers.
 */
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { BenchError } from './errors.ts'

/** The longest the API waits for an operation, and how often we ask again. */
const waitSeconds = 60
const maxWaits = 10

export interface Answer {
  readonly status: number
  readonly body: unknown
}

export interface StreamEvent {
  readonly name: string
  readonly data: Record<string, unknown>
  readonly atMs: number
}

export interface Session {
  readonly eventsUrl: string
  readonly token: string
}

export class Api {
  readonly url: string
  readonly dataPlaneUrl: string
  readonly token: string
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 128 })

  constructor(url: string, dataPlaneUrl: string, token: string) {
    this.url = url
    this.dataPlaneUrl = dataPlaneUrl
    this.token = token
  }

  /** One JSON request; any status below 400 is an answer, everything else throws with the error's message. */
  async call(method: string, url: string, body?: unknown, waitSeconds = 0): Promise<Answer> {
    const sent = body === undefined ? undefined : JSON.stringify(body)
    const answer = await this.#open(method, url, this.token, sent, waitSeconds)
    const chunks: Buffer[] = []
    for await (const chunk of answer) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const status = answer.statusCode ?? 0
    if (status >= 400) throw new BenchError(`${method} ${url} answered ${status}: ${text.slice(0, 300)}`)
    return { status, body: text === '' ? undefined : JSON.parse(text) }
  }

  /** Has a create accepted and answers the id; the sandbox is still being made. */
  async create(): Promise<string> {
    const { body } = await this.call('POST', `${this.url}/v1/sandboxes`, { template: 'base' })
    return text(member(body, 'sandbox'), 'id')
  }

  /** Creates a sandbox and waits, on the server's side, until it runs. */
  async createRunning(): Promise<string> {
    const url = `${this.url}/v1/sandboxes`
    const { body } = await this.call('POST', url, { template: 'base' }, waitSeconds)
    const id = text(member(body, 'sandbox'), 'id')
    await this.#finish(member(body, 'operation'))
    return id
  }

  /** Deletes a sandbox and waits, on the server's side, until nothing of it is left. */
  async delete(id: string): Promise<void> {
    const { body } = await this.call('DELETE', `${this.url}/v1/sandboxes/${id}`, undefined, waitSeconds)
    await this.#finish(member(body, 'operation'))
  }

  async state(id: string): Promise<string> {
    const { body } = await this.call('GET', `${this.url}/v1/sandboxes/${id}`)
    return text(body, 'state')
  }

  /** Records a command; attaching to its session starts it. Waits for a sandbox that is still being made. */
  async command(id: string, argv: readonly string[]): Promise<Session> {
    const { body } = await this.call('POST', `${this.url}/v1/sandboxes/${id}/commands`, { argv })
    const session = member(body, 'session')
    return { eventsUrl: text(session, 'events_url'), token: text(session, 'token') }
  }

  /** Runs a program to its end in one call; throws unless it ends with code 0. */
  async exec(id: string, argv: readonly string[]): Promise<void> {
    const { body } = await this.call('POST', `${this.dataPlaneUrl}/v1/sandboxes/${id}/exec`, { argv })
    const code = (body as Record<string, unknown>)['exit_code']
    if (code !== 0)
      throw new BenchError(`${argv[0]} in ${id} ended with ${JSON.stringify(body).slice(0, 300)}`)
  }

  /** The events of a session until `process_exited`, which must tell code 0. */
  async events(session: Session, onEvent: (event: StreamEvent) => void): Promise<void> {
    const answer = await this.#open('GET', session.eventsUrl, session.token)
    if (answer.statusCode !== 200)
      throw new BenchError(`GET ${session.eventsUrl} answered ${answer.statusCode}.`)
    let exited: StreamEvent | undefined
    const take = eventReader((event) => {
      if (event.name === 'process_exited') exited = event
      onEvent(event)
    })
    for await (const chunk of answer) {
      take(chunk as Buffer)
    }
    if (exited?.data['exit_code'] !== 0)
      throw new BenchError(`The command ended with ${JSON.stringify(exited?.data ?? 'no exit event')}.`)
  }

  close(): void {
    this.#agent.destroy()
  }

  /** An operation takes longer than one wait only on a host that is very busy. */
  async #finish(operation: Record<string, unknown>): Promise<void> {
    let now = operation
    for (let rounds = 0; now['state'] === 'pending' || now['state'] === 'running'; rounds++) {
      if (rounds === maxWaits) throw new BenchError(`Operation ${text(now, 'id')} does not end.`)
      const { body } = await this.call(
        'GET',
        `${this.url}/v1/operations/${text(now, 'id')}`,
        undefined,
        waitSeconds,
      )
      now = body as Record<string, unknown>
    }
    if (now['state'] !== 'succeeded')
      throw new BenchError(`An operation failed: ${JSON.stringify(now).slice(0, 300)}`)
  }

  #open(method: string, url: string, token: string, body?: string, wait = 0): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const outgoing = httpRequest(url, {
        method,
        agent: this.#agent,
        headers: {
          authorization: `Bearer ${token}`,
          ...(wait > 0 && { prefer: `wait=${wait}` }),
          ...(body !== undefined && {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(body),
          }),
        },
      })
      outgoing.on('response', resolve).on('error', reject)
      outgoing.end(body)
    })
  }
}

function eventReader(onEvent: (event: StreamEvent) => void): (chunk: Buffer) => void {
  let parts: Buffer[] = []
  return (chunk) => {
    let rest = chunk
    for (;;) {
      // An event ends with an empty line; the end may lie across two chunks.
      const tail = parts.at(-1)
      const torn = tail?.at(-1) === 10 && rest[0] === 10
      const end = torn ? 0 : rest.indexOf('\n\n')
      if (end < 0) break
      const block = Buffer.concat([...parts, rest.subarray(0, end)]).toString('latin1')
      parts = []
      rest = rest.subarray(end + (torn ? 1 : 2))
      const event = readBlock(block)
      if (event) onEvent(event)
    }
    if (rest.length > 0) parts.push(rest)
  }
}

function readBlock(block: string): StreamEvent | undefined {
  let name = ''
  let data = ''
  for (const line of block.split('\n')) {
    if (line.startsWith('event: ')) name = line.slice(7)
    else if (line.startsWith('data: ')) data += line.slice(6)
  }
  if (name === '' || data === '') return undefined
  return { name, data: JSON.parse(data) as Record<string, unknown>, atMs: performance.now() }
}

/** A member of a JSON object that must be an object. */
export function member(value: unknown, name: string): Record<string, unknown> {
  const found = (value as Record<string, unknown> | undefined)?.[name]
  if (typeof found !== 'object' || found === null) throw new BenchError(`An answer has no ${name}.`)
  return found as Record<string, unknown>
}

/** A member of a JSON object that must be a string. */
export function text(value: unknown, name: string): string {
  const found = (value as Record<string, unknown> | undefined)?.[name]
  if (typeof found !== 'string') throw new BenchError(`An answer has no ${name}.`)
  return found
}
