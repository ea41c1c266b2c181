import { errorBody, type PublicError } from '@space/contract'
import { fromConnectError } from '@space/contract/node-link'
import type { SandboxEvent } from '@space/core'
import { isWorthRetrying, type NodeApi } from '../node-link/node.ts'
import { observedColumns, toObservation } from '../node-link/observed.ts'
import type { ObservedColumns } from '../operations/change.ts'
import type { SandboxRow } from '../store/schema.ts'

/** What came of an ask: an event that ends it, or a reason to ask again later. */
export type AskOutcome =
  | { readonly kind: 'done'; readonly event: SandboxEvent | undefined; readonly observed: ObservedColumns }
  | { readonly kind: 'again'; readonly error: PublicError | undefined }

/** Asks the node to make a sandbox exist and run. Never throws. */
export async function askCreate(
  nodeApi: NodeApi,
  row: SandboxRow,
  nowMs: () => number,
  signal: AbortSignal,
): Promise<AskOutcome> {
  try {
    const seen = await nodeApi.create(
      {
        sandboxId: row.id,
        templateDigest: row.template_digest,
        shape: { vcpus: row.vcpus, memoryMib: row.memory_mib, diskMib: row.disk_mib },
        env: JSON.parse(row.env) as Record<string, string>,
      },
      { signal },
    )
    const observation = toObservation(seen, nowMs())
    if (observation === undefined || observation.state === 'creating' || observation.state === 'absent')
      return { kind: 'again', error: undefined }
    return { kind: 'done', event: { kind: 'observed', observation }, observed: observedColumns(seen) }
  } catch (thrown) {
    const error = fromConnectError(thrown)
    if (isWorthRetrying(error)) return { kind: 'again', error }
    return { kind: 'done', event: { kind: 'create_refused', error: errorBody(error) }, observed: {} }
  }
}

/** Asks the node to remove everything of a sandbox. Never throws; whatever fails is asked again. */
export async function askDelete(nodeApi: NodeApi, row: SandboxRow, signal: AbortSignal): Promise<AskOutcome> {
  try {
    await nodeApi.delete({ sandboxId: row.id }, { signal })
  } catch (thrown) {
    const error = fromConnectError(thrown)
    if (error.code !== 'not_found') return { kind: 'again', error }
  }
  return { kind: 'done', event: { kind: 'delete_done' }, observed: {} }
}
