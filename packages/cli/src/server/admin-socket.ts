/**
 * How `space down` reaches the process that holds the lock: a socket in root's folder, one request. A server ends all
 * sandboxes while the request waits, answers, and then ends itself; one that is still setting up stops doing so.
 */
import { chmod, rm } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { join } from 'node:path'
import { CliFailure } from '../failure.ts'
import { runFolder } from './instance.ts'

export interface EndedSandboxes {
  readonly sandboxes: readonly string[]
  /** False when it did not serve yet: sandboxes of an earlier server may be left. */
  readonly complete: boolean
}

/** Serves the socket; `onDown` is called once, and its answer sent to everyone who asked. */
export async function serveAdminSocket(
  home: string,
  onDown: () => Promise<EndedSandboxes>,
): Promise<AsyncDisposable> {
  const path = socketPath(home)
  await rm(path, { force: true })
  let ending: Promise<EndedSandboxes> | undefined
  const server = createServer((incoming, answer) => {
    if (incoming.method !== 'POST' || incoming.url !== '/down') {
      answer.writeHead(404).end()
      return
    }
    ending ??= onDown()
    ending.then(
      (ended) => answer.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(ended)),
      (error: unknown) => answer.writeHead(500).end(error instanceof Error ? error.message : String(error)),
    )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, resolve)
  })
  await chmod(path, 0o600)
  return {
    async [Symbol.asyncDispose]() {
      server.closeIdleConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Asks the serving process to end every sandbox and itself; resolves when the sandboxes are gone. */
export function askDown(home: string, signal: AbortSignal): Promise<EndedSandboxes> {
  return new Promise((resolve, reject) => {
    const asked = request({
      socketPath: socketPath(home),
      method: 'POST',
      path: '/down',
      agent: false,
      signal,
    })
    asked.on('error', (error) =>
      reject(
        signal.aborted
          ? signal.reason
          : new CliFailure('the serving process cannot be asked to end', {
              remedy: `end it by its pid (${join(runFolder(home), 'server.json')}), then run this again`,
              cause: error,
            }),
      ),
    )
    asked.on('response', (answer) => {
      let body = ''
      answer.setEncoding('utf8')
      answer.on('data', (part: string) => {
        body += part
      })
      answer.on('error', reject)
      answer.on('end', () => {
        if (answer.statusCode === 200) resolve(JSON.parse(body) as EndedSandboxes)
        else
          reject(
            new CliFailure(`the sandboxes could not be ended: ${body}`, {
              remedy: 'look into the log of the server',
            }),
          )
      })
    })
    asked.end()
  })
}

function socketPath(home: string): string {
  return join(runFolder(home), 'admin.sock')
}
