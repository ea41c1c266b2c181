import { backoffMs, decideIdempotency, retentionCutoffs, sessionEndsAtMs } from '@space/core'
import { expect, test } from 'vitest'

const kept = 86_400_000
const answered = { fingerprint: 'f', createdAtMs: 1000, answered: true }

test.each([
  ['fresh', undefined, 'f', 1000],
  ['replay', answered, 'f', 1000 + kept - 1],
  ['fresh', answered, 'f', 1000 + kept],
  ['fresh', answered, 'other', 1000 + kept],
  ['conflict', answered, 'other', 2000],
  ['resume', { ...answered, answered: false }, 'f', 2000],
  ['conflict', { ...answered, answered: false }, 'other', 2000],
] as const)(
  '%s: what a request with a key is to what is remembered (%#)',
  (decision, remembered, print, nowMs) => {
    expect(decideIdempotency(remembered, print, nowMs, kept)).toBe(decision)
  },
)

test('a sandbox is never forgotten before its operations', () => {
  const cutoffs = retentionCutoffs(10_000, {
    operationMs: 700,
    deletedSandboxMs: 100,
    idempotencyMs: 10,
    eventMs: 20,
  })
  expect(cutoffs).toEqual({
    operationsEndedAtMs: 9300,
    sandboxesDeletedAtMs: 9300,
    idempotencyCreatedAtMs: 9990,
    eventsCreatedAtMs: 9980,
  })
})

const session = { createdAtMs: 1000, attached: false, exitedAtMs: undefined }
const sessionLimits = { attachMs: 600, journalMs: 5000 }
test.each([
  ['unattached, it ends after the time to attach', session, 1600],
  ['attached, it lasts while the process runs', { ...session, attached: true }, undefined],
  ['then as long as the output is kept', { ...session, attached: true, exitedAtMs: 3000 }, 8000],
] as const)('a session: %s', (_what, given, endsAtMs) => {
  expect(sessionEndsAtMs(given, sessionLimits)).toBe(endsAtMs)
})

test('waits grow and stay bounded', () => {
  expect([0, 1, 2, 6, 7, 1000].map(backoffMs)).toEqual([100, 200, 400, 6400, 10_000, 10_000])
})
