import type { Client } from '@connectrpc/connect'
import type { PublicError } from '@space/contract'
import { fromConnectError, type NodeService } from '@space/contract/node-link'

/** The node's contract, called through the generated client. */
export type NodeApi = Client<typeof NodeService>

/** How long a question that needs no machine may take. */
const questionTimeoutMs = 10_000

/** Asks the node something that answers at once; its failures come back as PublicErrors. */
export async function askNode<T>(
  call: (options: { readonly timeoutMs: number; readonly signal?: AbortSignal }) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  try {
    return await call({ timeoutMs: questionTimeoutMs, ...(signal ? { signal } : {}) })
  } catch (thrown) {
    throw fromConnectError(thrown)
  }
}

/** Whether trying the same call again later can bring another result. */
export function isWorthRetrying(error: PublicError): boolean {
  return error.code === 'service_unavailable'
}
