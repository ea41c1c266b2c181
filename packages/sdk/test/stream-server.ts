import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A data plane made small: one process with a fixed output, served as the contract says, resumable by id. */
export interface StreamServer extends AsyncDisposable {
  readonly session: {
    readonly id: string
    readonly events_url: string
    readonly token: string
    readonly expires_at: string
  }
  /** Last-Event-ID of each connection, in order; undefined for none. */
  readonly connections: (string | undefined)[]
  /** Decides what becomes of each connection. */
  misbehave: (connection: number, response: ServerResponse) => Misbehaviour
}

export interface Misbehaviour {
  /** Ends the connection hard after about this many bytes of the answer, which may lie inside an event. */
  readonly cutAfterBytes?: number
  /** Answers with this status instead. */
  readonly status?: number
  readonly envelope?: object
  /** Stops sending after this many events, and leaves the connection open. */
  readonly stallAfterEvents?: number
  /** Adds to every offset told, to be caught. */
  readonly skew?: number
  /** Sends events from this many bytes before the one asked for. */
  readonly overlap?: number
}

export async function streamServer(output: Buffer, chunkBytes: number): Promise<StreamServer> {
  const connections: (string | undefined)[] = []
  const server = createServer((request, response) => {
    const header = request.headers['last-event-id']
    const lastEventId = typeof header === 'string' ? header : undefined
    connections.push(lastEventId)
    const plan = result.misbehave(connections.length, response)
    if (plan.status !== undefined) {
      response.writeHead(plan.status, { 'content-type': 'application/json' })
      response.end(plan.envelope === undefined ? '' : JSON.stringify(plan.envelope))
      return
    }
    if (lastEventId?.endsWith('.exit')) {
      response.writeHead(204).end()
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    let sent = 0
    for (const [index, event] of events(output, chunkBytes, lastEventId, plan).entries()) {
      if (index === plan.stallAfterEvents) return
      const room = (plan.cutAfterBytes ?? Number.POSITIVE_INFINITY) - sent
      if (event.length > room) {
        response.write(event.slice(0, room), () => response.destroy())
        return
      }
      response.write(event)
      sent += event.length
    }
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const result: StreamServer = {
    session: {
      id: 'ses1',
      events_url: `http://127.0.0.1:${port}/v1/sessions/ses1/events`,
      token: 'spt_test',
      expires_at: '2030-01-01T00:00:00.000Z',
    },
    connections,
    misbehave: () => ({}),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return result
}

function events(
  output: Buffer,
  chunkBytes: number,
  lastEventId: string | undefined,
  plan: Misbehaviour,
): string[] {
  const wanted = lastEventId === undefined ? 0 : Number(lastEventId.split('.')[1])
  const first = Math.max(0, wanted - (plan.overlap ?? 0))
  const list: string[] = ['retry: 1000\n\n']
  if (lastEventId === undefined)
    list.push(
      'id: 0.0.1\nevent: process_started\ndata: {"process_id":"prc1","pid":7,"started_at":"2030-01-01T00:00:00.000Z"}\n\n',
    )
  for (let offset = first; offset < output.length; offset += chunkBytes) {
    const data = output.subarray(offset, offset + chunkBytes)
    const body = JSON.stringify({ data: data.toString('base64'), offset: offset + (plan.skew ?? 0) })
    const stream = (offset / chunkBytes) % 2 < 1 ? 'stdout' : 'stderr'
    list.push(`id: 0.${offset + data.length}.0\nevent: ${stream}\ndata: ${body}\n\n`)
  }
  list.push(
    `id: 0.${output.length}.exit\nevent: process_exited\ndata: {"exit_code":7,"signal":null,"timed_out":false,"reason":"exited"}\n\n`,
  )
  return list
}
