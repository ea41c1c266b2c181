import { createServer } from 'node:net'
import { CliFailure, exitCodes } from '../failure.ts'
import type { Settings } from '../settings/settings.ts'

export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** Where a server of this URL listens; a name is looked up by the system, `localhost` included. */
export function listenAddress(url: URL): ListenAddress {
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
  return { host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port }
}

/** Throws when a port is taken, before anything else is begun: found out after minutes of set-up it would be a pity. */
export async function requireFreePorts(settings: Settings): Promise<void> {
  await requireFree(settings.apiUrl, 'SPACE_API_URL')
  await requireFree(settings.dataPlaneUrl, 'SPACE_DATA_PLANE_URL')
}

async function requireFree(url: URL, variable: string): Promise<void> {
  const { host, port } = listenAddress(url)
  const server = createServer()
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host, port, exclusive: true }, resolve)
    })
  } catch (error) {
    throw cannotListen(error, url, variable)
  }
  await new Promise((resolve) => server.close(resolve))
}

/** What a failed listen means, in a sentence with its remedy. */
export function cannotListen(error: unknown, url: URL, variable: string): CliFailure {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const { host, port } = listenAddress(url)
  if (code === 'EADDRINUSE')
    return new CliFailure(`port ${port} on ${host} is taken by another program`, {
      code: 'port_taken',
      remedy: `end it (\`ss -ltnp sport = :${port}\` names it), or set ${variable} to another port`,
      cause: error,
    })
  return new CliFailure(`${url.origin} is no address to listen on here (${code ?? error})`, {
    code: 'cannot_listen',
    exitCode: exitCodes.usage,
    remedy: `set ${variable} to an address of this machine, such as http://127.0.0.1:${port}`,
    cause: error,
  })
}
