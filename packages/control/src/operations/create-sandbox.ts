import { type CreateSandboxRequest, checkEnv, checkMetadata, limits, PublicError } from '@space/contract'
import { step } from '@space/core'
import type { Kysely } from 'kysely'
import type { Caller } from '../auth/tokens.ts'
import type { ResolvedTemplate } from '../node-link/templates.ts'
import { insertSandbox } from '../store/sandboxes.ts'
import type { Database, OperationRow, SandboxRow } from '../store/schema.ts'
import { lifecycleColumns, recordEvent, writeEffects } from './change.ts'
import type { IdSource } from './ids.ts'
import type { Lifecycle } from './lifecycle.ts'

/** Checks what the schema cannot; throws `invalid_request` naming the field. */
export function checkCreate(request: CreateSandboxRequest, nowMs: number): void {
  if (Buffer.byteLength(request.template) > limits.template_ref_bytes)
    throw new PublicError(
      'invalid_request',
      `template: at most ${limits.template_ref_bytes} bytes are taken.`,
      {
        details: { field: 'template', limit: limits.template_ref_bytes },
      },
    )
  if (request.metadata) checkMetadata(request.metadata)
  if (request.env) checkEnv(request.env)
  if (typeof request.expires_at === 'string' && request.lifetime_seconds !== undefined)
    throw new PublicError(
      'invalid_request',
      'lifetime_seconds: give either expires_at or lifetime_seconds.',
      {
        details: { field: 'lifetime_seconds' },
      },
    )
  checkExpiry(request.expires_at, nowMs)
}

/** The moment an `expires_at` means; it must lie ahead, at most a year. Null and nothing mean never. */
export function checkExpiry(at: string | null | undefined, nowMs: number): number | undefined {
  if (at === null || at === undefined) return undefined
  const atMs = Date.parse(at)
  if (!(atMs > nowMs && atMs <= nowMs + limits.lifetime_seconds * 1000))
    throw new PublicError(
      'invalid_request',
      `expires_at must lie in the future, at most ${limits.lifetime_seconds} seconds ahead.`,
      { details: { field: 'expires_at', limit: limits.lifetime_seconds } },
    )
  return atMs
}

/** Accepts a create inside the caller's transaction: sandbox, operation, event and what the node must be asked. */
export async function createSandbox(
  db: Kysely<Database>,
  lifecycle: Lifecycle,
  caller: Caller,
  request: CreateSandboxRequest,
  template: ResolvedTemplate,
  ids: IdSource,
): Promise<{ row: SandboxRow; operation: OperationRow }> {
  const nowMs = lifecycle.clock.nowMs()
  const [id, operationId] = [ids('sandbox'), ids('operation')]
  const expiresAtMs =
    request.lifetime_seconds === undefined
      ? checkExpiry(request.expires_at, nowMs)
      : nowMs + request.lifetime_seconds * 1000
  const event = { kind: 'create_requested', operationId, expiresAtMs } as const
  const { state, effects } = step(undefined, event, nowMs, lifecycle.limits)
  if (!state) throw new PublicError('internal', 'A create was not understood.')
  const resources = { ...template.resources, ...request.resources }
  const row = await insertSandbox(db, {
    id,
    account_id: caller.accountId,
    version: 1,
    ...lifecycleColumns(state, undefined),
    template_ref: request.template,
    template_digest: template.digest,
    ...resources,
    env: JSON.stringify(request.env ?? {}),
    metadata: JSON.stringify(request.metadata ?? {}),
    created_at: nowMs,
  })
  const operation = await writeEffects(db, row, effects, nowMs)
  if (!operation) throw new PublicError('internal', 'A create left no operation.')
  await recordEvent(db, row, 'sandbox.creating', nowMs)
  return { row, operation }
}
