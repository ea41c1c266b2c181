/** How long control keeps what has ended. */
export interface RetentionLimits {
  readonly operationMs: number
  readonly deletedSandboxMs: number
  readonly idempotencyMs: number
  readonly eventMs: number
}

/** What ended (or was made, for keys and events) at or before these moments may go. */
export interface RetentionCutoffs {
  readonly operationsEndedAtMs: number
  readonly sandboxesDeletedAtMs: number
  readonly idempotencyCreatedAtMs: number
  readonly eventsCreatedAtMs: number
}

/** Where the line between kept and forgotten lies now. A sandbox never goes before its operations. */
export function retentionCutoffs(nowMs: number, limits: RetentionLimits): RetentionCutoffs {
  return {
    operationsEndedAtMs: nowMs - limits.operationMs,
    sandboxesDeletedAtMs: nowMs - Math.max(limits.deletedSandboxMs, limits.operationMs),
    idempotencyCreatedAtMs: nowMs - limits.idempotencyMs,
    eventsCreatedAtMs: nowMs - limits.eventMs,
  }
}

/** When a session's token ends: unattached after `attachMs`, else `journalMs` after its process ended. */
export function sessionEndsAtMs(
  session: {
    readonly createdAtMs: number
    readonly attached: boolean
    readonly exitedAtMs: number | undefined
  },
  limits: { readonly attachMs: number; readonly journalMs: number },
): number | undefined {
  if (!session.attached) return session.createdAtMs + limits.attachMs
  return session.exitedAtMs === undefined ? undefined : session.exitedAtMs + limits.journalMs
}
