/**
 * A client written for the tests alone, on plain `fetch`, so that a mistake in the SDK and a mistake in the server
 * cannot cancel each other out.
 */
export interface Event {
  readonly id: string
  readonly name: string
  readonly data: Record<string, unknown>
}

export interface Session {
  readonly id: string
  readonly events_url: string
  readonly token: string
}

export interface CommandResult {
  readonly stdout: Buffer
  readonly stderr: Buffer
  readonly exit: Record<string, unknown>
}

export class Client {
  readonly url: string
  readonly token: string

  constructor(url: string, token: string) {
    this.url = url
    this.token = token
  }

  async fetch(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    return fetch(path.startsWith('http') ? path : this.url + path, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  }

  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into by the tests, field by field
  async call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<any> {
    const answer = await this.fetch(method, path, body, headers)
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }

  async create(body: Record<string, unknown> = {}): Promise<string> {
    const { sandbox } = await this.call(
      'POST',
      '/v1/sandboxes',
      { template: 'base', ...body },
      { prefer: 'wait=60' },
    )
    if (sandbox.state !== 'running') throw new Error(`sandbox is ${JSON.stringify(sandbox)}`)
    return sandbox.id
  }

  async delete(sandbox: string): Promise<void> {
    const { operation } = await this.call('DELETE', `/v1/sandboxes/${sandbox}`, undefined, {
      prefer: 'wait=60',
    })
    if (operation.state !== 'succeeded') throw new Error(`delete: ${JSON.stringify(operation)}`)
  }

  async command(
    sandbox: string,
    argv: readonly string[],
    options: Record<string, unknown> = {},
  ): Promise<{ process: { id: string }; session: Session }> {
    return this.call('POST', `/v1/sandboxes/${sandbox}/commands`, { argv, ...options })
  }

  /** Attaches to a session; ends with the stream, or throws when it is cut. */
  async *events(
    session: Session,
    options: { lastEventId?: string; signal?: AbortSignal } = {},
  ): AsyncGenerator<Event> {
    const answer = await fetch(session.events_url, {
      headers: {
        authorization: `Bearer ${session.token}`,
        ...(options.lastEventId === undefined ? {} : { 'last-event-id': options.lastEventId }),
      },
      ...(options.signal ? { signal: options.signal } : {}),
    })
    if (answer.status === 204) return
    if (!answer.ok || !answer.body) throw new Error(`attach: ${answer.status} ${await answer.text()}`)
    yield* parse(answer.body)
  }

  /** Runs a command to its end. */
  async run(
    sandbox: string,
    argv: readonly string[],
    options: Record<string, unknown> = {},
  ): Promise<CommandResult> {
    const { session } = await this.command(sandbox, argv, options)
    return collect(this.events(session))
  }

  /** Runs a shell script to its end and gives its standard output as text. */
  async sh(sandbox: string, script: string, options: Record<string, unknown> = {}): Promise<string> {
    return (await this.run(sandbox, ['sh', '-c', script], options)).stdout.toString()
  }
}

export async function collect(events: AsyncIterable<Event>): Promise<CommandResult> {
  const output = { stdout: [] as Buffer[], stderr: [] as Buffer[] }
  let next = 0
  for await (const { name, data } of events) {
    if (name === 'stdout' || name === 'stderr') {
      const bytes = bytesOf(data)
      if (data['offset'] !== next) throw new Error(`offset ${data['offset']} where ${next} was due`)
      next += bytes.length
      output[name].push(bytes)
    } else if (name === 'process_exited')
      return { stdout: Buffer.concat(output.stdout), stderr: Buffer.concat(output.stderr), exit: data }
  }
  throw new Error('the stream ended without process_exited')
}

export function bytesOf(data: Record<string, unknown>): Buffer {
  return Buffer.from(String(data['data']), 'base64')
}

async function* parse(body: ReadableStream<Uint8Array>): AsyncGenerator<Event> {
  let rest = Buffer.alloc(0)
  for await (const chunk of body) {
    rest = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk])
    for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
      const event = parseBlock(rest.subarray(0, end).toString())
      rest = rest.subarray(end + 2)
      if (event) yield event
    }
  }
}

function parseBlock(block: string): Event | undefined {
  const fields = new Map<string, string>()
  for (const line of block.split('\n')) {
    if (line.startsWith(':')) continue
    const colon = line.indexOf(': ')
    fields.set(line.slice(0, colon), line.slice(colon + 2))
  }
  const name = fields.get('event')
  if (name === undefined) return undefined
  return { id: fields.get('id') ?? '', name, data: JSON.parse(fields.get('data') ?? '{}') }
}
