import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export interface SeenRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export interface ApiServer extends AsyncDisposable {
  readonly url: string
  readonly seen: SeenRequest[]
}

/** A server that answers each request as `answer` says, and remembers what it was asked. */
export async function apiServer(
  answer: (request: SeenRequest, count: number, response: ServerResponse) => void,
): Promise<ApiServer> {
  const seen: SeenRequest[] = []
  const server = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request
    seen.push({ method, url, headers, body: await text(request) })
    const last = seen.at(-1)
    if (last !== undefined) answer(last, seen.length, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Answers with JSON. */
export function reply(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}
