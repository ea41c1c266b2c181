/**
 * What control knows of one sandbox, as far as decisions need it.
 *
 *   (nothing) ──create_requested──▶ creating ──observed running──▶ running ──observed failed, absent──▶ failed
 *                                      │                               │                                  │
 *                                      └── failed answer, deadline ──▶ failed                             │
 *   any of them ──delete_requested, expired──▶ deleting ──answered──▶ deleted          ◀──────────────────┘
 *   any live one ──observed quarantined──▶ quarantined ──delete_requested──▶ deleted (the evidence stays)
 *
 * Invariants: every operation that was opened ends exactly once (A2); `deleted` is final; no phase is without an exit
 * (D2); the node is asked to create only while creating.
 */
import type { ErrorBody } from '@space/contract'

export interface Creating {
  readonly kind: 'creating'
  readonly operationId: string
  /** When the create counts as failed whatever the node says later. */
  readonly deadlineMs: number
}

export interface Running {
  readonly kind: 'running'
  readonly startedAtMs: number
}

export interface Failed {
  readonly kind: 'failed'
  readonly error: ErrorBody
}

export interface Deleting {
  readonly kind: 'deleting'
  /** Undefined when nobody waits for it: an expired sandbox, or an operation that ended at its deadline. */
  readonly operationId: string | undefined
  readonly deadlineMs: number
}

export interface Deleted {
  readonly kind: 'deleted'
  readonly deletedAtMs: number
}

export interface Quarantined {
  readonly kind: 'quarantined'
  readonly error: ErrorBody
}

export type Phase = Creating | Running | Failed | Deleting | Deleted | Quarantined

export interface SandboxState {
  readonly phase: Phase
  /** When the sandbox ends regardless of activity; undefined = never. */
  readonly expiresAtMs: number | undefined
}

/** How long control waits before an operation ends without the node's word. */
export interface LifecycleLimits {
  readonly createDeadlineMs: number
  readonly deleteDeadlineMs: number
}

export const defaultLifecycleLimits: LifecycleLimits = {
  createDeadlineMs: 600_000,
  deleteDeadlineMs: 600_000,
}

/** The next moment at which `deadline_reached` can change this state; undefined when time alone changes nothing. */
export function nextDeadlineMs(state: SandboxState): number | undefined {
  const { phase, expiresAtMs } = state
  switch (phase.kind) {
    case 'creating':
      return Math.min(phase.deadlineMs, expiresAtMs ?? Number.POSITIVE_INFINITY)
    case 'running':
    case 'failed':
      return expiresAtMs
    case 'deleting':
      return phase.operationId === undefined ? undefined : phase.deadlineMs
    case 'deleted':
    case 'quarantined':
      return undefined
  }
}
