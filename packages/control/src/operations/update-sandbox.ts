import { checkMetadata, PublicError, type UpdateSandboxRequest } from '@space/contract'
import type { Kysely } from 'kysely'
import { replaceMetadata } from '../store/sandboxes.ts'
import type { Database, SandboxRow } from '../store/schema.ts'
import { changeSandbox, readLifecycle } from './change.ts'
import { checkExpiry } from './create-sandbox.ts'
import type { Lifecycle } from './lifecycle.ts'

/** Changes what may be changed of a living sandbox, inside the caller's transaction. */
export async function updateSandboxSettings(
  db: Kysely<Database>,
  lifecycle: Lifecycle,
  before: SandboxRow,
  request: UpdateSandboxRequest,
): Promise<SandboxRow> {
  const nowMs = lifecycle.clock.nowMs()
  if (request.metadata) checkMetadata(request.metadata)
  if (before.state === 'deleting' || before.state === 'deleted')
    throw new PublicError(
      'failed_precondition',
      `The sandbox is ${before.state}: nothing of it can be changed.`,
      {
        details: { state: before.state },
      },
    )
  const expiresAtMs =
    request.expires_at === undefined
      ? readLifecycle(before.lifecycle).expiresAtMs
      : checkExpiry(request.expires_at, nowMs)
  const metadata = request.metadata === undefined ? before.metadata : JSON.stringify(request.metadata)
  const event = { kind: 'expiry_set', expiresAtMs } as const
  const { row } = await changeSandbox(db, before, event, nowMs, lifecycle.limits, { metadata })
  if (metadata !== before.metadata) await replaceMetadata(db, row.id, metadata)
  return row
}
