/** What is remembered of a request that came with an idempotency key. */
export interface RememberedRequest {
  readonly fingerprint: string
  readonly createdAtMs: number
  readonly answered: boolean
}

/**
 * - `fresh`: never seen, or too long ago: do it.
 * - `replay`: the same request was answered: give that answer again.
 * - `resume`: the same request was begun and never answered: do it under the same ids.
 * - `conflict`: the key belongs to another request.
 */
export type IdempotencyDecision = 'fresh' | 'replay' | 'resume' | 'conflict'

/** Decides what a request with an idempotency key is to what is remembered under that key. */
export function decideIdempotency(
  remembered: RememberedRequest | undefined,
  fingerprint: string,
  nowMs: number,
  keptMs: number,
): IdempotencyDecision {
  if (remembered === undefined || nowMs - remembered.createdAtMs >= keptMs) return 'fresh'
  if (remembered.fingerprint !== fingerprint) return 'conflict'
  return remembered.answered ? 'replay' : 'resume'
}
