import { limits, PublicError } from '@space/contract'
import { findSandbox, getSandbox } from '../store/sandboxes.ts'
import type { SandboxRow } from '../store/schema.ts'
import type { Lifecycle } from './lifecycle.ts'

/**
 * A sandbox once it runs. One that is being created is waited for, at most 30 s; any other state is a
 * `failed_precondition`, a deleted or another account's sandbox `not_found`. `accountId` undefined: any account.
 */
export async function awaitRunning(
  lifecycle: Lifecycle,
  accountId: string | undefined,
  id: string,
  signal?: AbortSignal,
): Promise<SandboxRow> {
  const { read } = lifecycle.store
  const look = async () => {
    const row = accountId === undefined ? await getSandbox(read, id) : await findSandbox(read, accountId, id)
    return row?.state === 'creating' ? undefined : (row ?? 'missing')
  }
  const row = await lifecycle.bell.waitFor(id, look, limits.create_wait_seconds * 1000, signal)
  if (row === undefined)
    throw new PublicError('service_unavailable', `The sandbox ${id} is still being created: try again.`, {
      details: { reason: 'still_creating' },
    })
  if (row === 'missing' || row.state === 'deleted') throw sandboxMissing(id)
  if (row.state !== 'running')
    throw new PublicError('failed_precondition', `The sandbox ${id} is ${row.state}, not running.`, {
      details: { state: row.state },
    })
  return row
}

/** The one answer for a sandbox that does not exist or is another account's. */
export function sandboxMissing(id: string): PublicError {
  const shown = /^[0-9a-z]{1,40}$/.test(id) ? id : 'of this id'
  return new PublicError('not_found', `There is no sandbox ${shown}; GET /v1/sandboxes lists yours.`, {
    details: { field: 'id' },
  })
}
