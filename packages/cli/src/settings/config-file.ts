/** The client configuration file: which SPACE to talk to, and the token for it. Mode 0600, since it holds the token. */
import { chmod, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CliFailure } from '../failure.ts'

export interface ClientConfig {
  readonly apiUrl: string
  readonly dataPlaneUrl: string | undefined
  readonly token: string
}

/** Longest file taken, in bytes. */
const maxBytes = 64 * 1024

/** Reads the file; undefined when there is none. */
export async function readConfig(path: string): Promise<ClientConfig | undefined> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (isErrno(error, 'ENOENT') || isErrno(error, 'ENOTDIR')) return undefined
    throw new CliFailure(`${path} cannot be read (${errno(error)})`, {
      remedy: 'make it readable for you, or name another one by SPACE_CONFIG',
      cause: error,
    })
  }
  const config = text.length <= maxBytes ? parse(text) : undefined
  if (config !== undefined) return config
  throw new CliFailure(`${path} is no configuration of SPACE`, {
    remedy: `remove it and run \`space login URL\` (or \`space up\` on this machine)`,
  })
}

/** Replaces the file in one step; another reader sees the old or the new one, and nobody else can read it. */
export async function writeConfig(path: string, config: ClientConfig): Promise<void> {
  const fields = { api_url: config.apiUrl, data_plane_url: config.dataPlaneUrl, token: config.token }
  const temporary = `${path}.${process.pid}.tmp`
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    const file = await open(temporary, 'wx', 0o600)
    try {
      await file.writeFile(`${JSON.stringify(fields, null, 2)}\n`)
      await file.sync()
    } finally {
      await file.close()
    }
    await chmod(temporary, 0o600)
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw new CliFailure(`${path} cannot be written (${errno(error)})`, {
      remedy: 'make its folder writable, or name another file by SPACE_CONFIG',
      cause: error,
    })
  }
}

function parse(text: string): ClientConfig | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { api_url: apiUrl, data_plane_url: dataPlaneUrl, token } = value as Record<string, unknown>
  if (typeof apiUrl !== 'string' || !URL.canParse(apiUrl) || typeof token !== 'string') return undefined
  return { apiUrl, token, dataPlaneUrl: typeof dataPlaneUrl === 'string' ? dataPlaneUrl : undefined }
}

function isErrno(error: unknown, code: string): boolean {
  return errno(error) === code
}

function errno(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
}
