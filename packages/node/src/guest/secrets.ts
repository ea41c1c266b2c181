import { randomBytes } from 'node:crypto'
import { bootPrefix, prefixBytes } from './handshake.ts'

/**
 * Which prefix announces the next handshake. `candidate` is one the agent was, or was about to be, told: as long as it
 * is there the agent may have either, and both are tried. A candidate is never dropped, only settled.
 */
export interface LinkSecrets {
  readonly current: Uint8Array
  readonly candidate?: Uint8Array
}

/** Where the secrets of one machine's channel are kept: beside the machine, root's, across restarts of the node. */
export interface LinkSecretStore {
  /** `bootSecrets` for a machine that was never linked since its boot. */
  read(): Promise<LinkSecrets>
  /** Resolves once they are durable: only then is the agent told. */
  write(secrets: LinkSecrets): Promise<void>
}

/** What an agent has after a boot. */
export const bootSecrets: LinkSecrets = { current: bootPrefix }

/** The prefixes an agent may have, likeliest first. */
export function possiblePrefixes(secrets: LinkSecrets): readonly Uint8Array[] {
  return secrets.candidate === undefined ? [secrets.current] : [secrets.candidate, secrets.current]
}

/** True for the prefix every agent boots with, which a program in the guest can know. */
export function isBootPrefix(prefix: Uint8Array): boolean {
  return Buffer.compare(prefix, bootPrefix) === 0
}

/**
 * Gives the agent a new prefix: written down as the candidate, told, then written down as the current one. A failure
 * at any point leaves secrets that open the next link. A candidate that is still unsettled is told again.
 */
export async function rotateSecret(
  store: LinkSecretStore,
  current: Uint8Array,
  tell: (prefix: Uint8Array) => Promise<unknown>,
): Promise<Uint8Array> {
  const { candidate: unsettled } = await store.read()
  const known = unsettled !== undefined && Buffer.compare(unsettled, current) !== 0
  const candidate = known ? unsettled : randomBytes(prefixBytes)
  if (!known) await store.write({ current, candidate })
  await tell(candidate)
  await store.write({ current: candidate })
  return candidate
}

/** Keeps secrets in memory: for tests and for machines nobody outlives. */
export function memorySecrets(initial: LinkSecrets = bootSecrets): LinkSecretStore {
  let secrets = initial
  return {
    read: async () => secrets,
    write: async (next) => {
      secrets = next
    },
  }
}
