/** What the node says to the agent of a sandbox's machine at its start and every so often. */
import { randomBytes } from 'node:crypto'
import type { GuestLink, GuestSession } from '../guest/index.ts'

/** How often each running guest is told the time. */
export const clockIntervalMs = 30_000

const entropyBytes = 256

/**
 * Makes a restored or booted guest this sandbox's own before its workload runs (C1): clock, random pool, hostname,
 * environment, generation, and a channel secret nobody else has.
 */
export async function wakeGuest(
  link: GuestLink,
  sandbox: { readonly sandboxId: string; readonly env: Readonly<Record<string, string>> },
  signal: AbortSignal,
): Promise<{ readonly failedHooks: readonly string[] }> {
  const wake = {
    unixNs: unixNs(),
    entropy: randomBytes(entropyBytes),
    hostname: sandbox.sandboxId,
    generation: randomBytes(16).toString('hex'),
    env: { ...sandbox.env },
  }
  const [woken] = await Promise.all([link.client.wake(wake, { signal }), link.rotateSecret()])
  return { failedHooks: woken.failedHooks }
}

/** Tells a guest the time; a guest that does not answer is told again at the next turn. */
export async function setClock(session: GuestSession): Promise<void> {
  const patience = AbortSignal.timeout(clockIntervalMs / 2)
  await session.withClient((client) => client.setClock({ unixNs: unixNs() }), { signal: patience })
}

function unixNs(): bigint {
  return BigInt(Date.now()) * 1_000_000n
}
