import { readdir, readFile, readlink } from 'node:fs/promises'
import { createServer } from 'node:net'
import { isErrno } from '../images/publish.ts'
import { bad, type Check, ok } from './check.ts'

const probeTimeoutMs = 2_000

/** Whether the two ports are free, or SPACE's own already. */
export async function portChecks(urls: Readonly<Record<string, string>>): Promise<Check[]> {
  return await Promise.all(Object.entries(urls).map(([variable, url]) => portCheck(variable, url)))
}

async function portCheck(variable: string, url: string): Promise<Check> {
  const title = variable === 'SPACE_API_URL' ? 'API port' : 'Data plane port'
  const id = variable === 'SPACE_API_URL' ? 'api-port' : 'data-plane-port'
  const address = URL.parse(url)
  if (address === null) return bad('fail', id, title, `${variable} is no URL: ${url}`, `unset ${variable}`)
  const port = Number(address.port || (address.protocol === 'https:' ? 443 : 80))
  const taken = await whyTaken(address.hostname.replace(/^\[|\]$/g, ''), port)
  if (taken === undefined) return ok(id, title, `${address.host} is free`)
  if (await isSpace(address)) return ok(id, title, `${address.host}: SPACE is serving there`)
  const owner = await ownerOf(port)
  const remedy = `${owner === undefined ? 'End the program that listens there' : `kill ${owner.pid}`}, or set ${variable} to another port.`
  const by = owner === undefined ? '' : ` by ${owner.name} (pid ${owner.pid})`
  return bad('fail', id, title, `${address.host} ${taken}${by}`, remedy)
}

/** Tries to listen there for a moment. */
async function whyTaken(host: string, port: number): Promise<string | undefined> {
  const server = createServer()
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host, port, exclusive: true }, resolve)
    })
    return undefined
  } catch (error) {
    if (isErrno(error, 'EADDRINUSE')) return 'is taken'
    if (isErrno(error, 'EACCES')) return 'may not be used by this user'
    if (isErrno(error, 'EADDRNOTAVAIL', 'ENOTFOUND')) return 'is no address of this host'
    throw error
  } finally {
    server.close()
  }
}

async function isSpace(address: URL): Promise<boolean> {
  try {
    const answer = await fetch(new URL('/healthz', address), { signal: AbortSignal.timeout(probeTimeoutMs) })
    await answer.body?.cancel()
    return answer.ok
  } catch {
    return false
  }
}

/** The process that listens on a TCP port, found by its socket's inode. */
async function ownerOf(port: number): Promise<{ pid: number; name: string } | undefined> {
  const sockets = await listeningInodes(port)
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => [])
    for (const descriptor of descriptors) {
      const target = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '')
      if (!sockets.has(target)) continue
      return { pid: Number(pid), name: (await readFile(`/proc/${pid}/comm`, 'utf8')).trim() }
    }
  }
  return undefined
}

async function listeningInodes(port: number): Promise<Set<string>> {
  const inodes = new Set<string>()
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6'])
    for (const line of (await readFile(table, 'utf8').catch(() => '')).split('\n')) {
      const [, local, , state, , , , , , inode] = line.trim().split(/\s+/)
      if (local?.endsWith(suffix) && state === '0A') inodes.add(`socket:[${inode}]`)
    }
  return inodes
}
