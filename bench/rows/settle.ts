/** Waits until VMMs wait ahead again, so that a create finds what the figure says it finds. */
import { setTimeout as delay } from 'node:timers/promises'
import { vmmChildrenOf } from '../processes.ts'

const pollMs = 50
const readyTimeoutMs = 15_000
const idleMs = 500

/** Waits until `count` VMMs are children of the servers (those handed out and those ahead) and have gone idle. */
export async function readyAhead(serversPid: number, count: number): Promise<void> {
  const deadline = performance.now() + readyTimeoutMs
  while ((await vmmChildrenOf(serversPid)) < count && performance.now() < deadline) await delay(pollMs)
  await delay(idleMs)
}
