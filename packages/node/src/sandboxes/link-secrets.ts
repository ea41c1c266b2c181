/** The secrets of a sandbox's guest channel, in a file of its folder: durable before the agent is told (link.ts). */

import { bootSecrets, type LinkSecretStore, type LinkSecrets } from '../guest/index.ts'
import { publishJson, readJson } from '../images/publish.ts'

/** Opens the store of one machine; without a file the agent has what it booted with. */
export function fileSecrets(path: string): LinkSecretStore {
  return {
    async read() {
      return parse(await readJson(path)) ?? bootSecrets
    },
    async write(secrets) {
      await publishJson(path, {
        current: hex(secrets.current),
        ...(secrets.candidate === undefined ? {} : { candidate: hex(secrets.candidate) }),
      })
    },
  }
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

function parse(value: unknown): LinkSecrets | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { current, candidate } = value as Record<string, unknown>
  if (typeof current !== 'string') return undefined
  return {
    current: Buffer.from(current, 'hex'),
    ...(typeof candidate === 'string' ? { candidate: Buffer.from(candidate, 'hex') } : {}),
  }
}
