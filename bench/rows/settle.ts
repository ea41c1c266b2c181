/** Waits until a sandbox that was asked for is what was asked for, and until VMMs wait ahead again. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Api } from '../api.ts'
import { BenchError } from '../errors.ts'
import { vmmChildrenOf } from '../processes.ts'

const pollMs = 50
const stateTimeoutMs = 180_000
const readyTimeoutMs = 15_000
const idleMs = 500

/** Polls until the sandbox is in `state`; a failed one throws. */
export async function reaches(api: Api, id: string, state: string): Promise<void> {
  const deadline = performance.now() + stateTimeoutMs
  for (;;) {
    const now = await api.state(id)
    if (now === state) return
    if (now === 'failed') throw new BenchError(`Sandbox ${id} failed.`)
    if (performance.now() > deadline) throw new BenchError(`Sandbox ${id} is still ${now}.`)
    await delay(pollMs)
  }
}

/** Waits until `count` VMMs are children of the servers (those handed out and those ahead) and have gone idle. */
export async function readyAhead(serversPid: number, count: number): Promise<void> {
  const deadline = performance.now() + readyTimeoutMs
  while ((await vmmChildrenOf(serversPid)) < count && performance.now() < deadline) await delay(pollMs)
  await delay(idleMs)
}
