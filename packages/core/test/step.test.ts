import type { ErrorBody } from '@space/contract'
import { type Effect, nextDeadlineMs, type SandboxEvent, type SandboxState, step } from '@space/core'
import { expect, test } from 'vitest'

const limits = { createDeadlineMs: 1000, deleteDeadlineMs: 2000 }
const broken: ErrorBody = { code: 'internal', message: 'It broke.', details: {}, retryable: false }

const creating: SandboxState = {
  phase: { kind: 'creating', operationId: 'op1', deadlineMs: 1000 },
  expiresAtMs: undefined,
}
const running: SandboxState = { phase: { kind: 'running', startedAtMs: 5 }, expiresAtMs: undefined }
const failed: SandboxState = { phase: { kind: 'failed', error: broken }, expiresAtMs: undefined }
const deleting: SandboxState = {
  phase: { kind: 'deleting', operationId: 'op2', deadlineMs: 2000 },
  expiresAtMs: undefined,
}
const deletingForNobody: SandboxState = {
  phase: { kind: 'deleting', operationId: undefined, deadlineMs: 2000 },
  expiresAtMs: undefined,
}
const deleted: SandboxState = { phase: { kind: 'deleted', deletedAtMs: 9 }, expiresAtMs: undefined }
const quarantined: SandboxState = { phase: { kind: 'quarantined', error: broken }, expiresAtMs: undefined }

const remove: SandboxEvent = { kind: 'delete_requested', operationId: 'op9' }
const runs: SandboxEvent = { kind: 'observed', observation: { state: 'running', startedAtMs: 7 } }
const fails: SandboxEvent = { kind: 'observed', observation: { state: 'failed', error: broken } }
const absent: SandboxEvent = { kind: 'observed', observation: { state: 'absent' } }
const doubtful: SandboxEvent = { kind: 'observed', observation: { state: 'quarantined', error: broken } }
const timePasses: SandboxEvent = { kind: 'deadline_reached' }

/** An effect as a short word: `+op` opened, `>op` begun, `✓op` succeeded, `✗op` failed, `ask:create`. */
function word(effect: Effect): string {
  switch (effect.kind) {
    case 'operation_opened':
      return `+${effect.operationId}`
    case 'operation_begun':
      return `>${effect.operationId}`
    case 'operation_succeeded':
      return `✓${effect.operationId}`
    case 'operation_failed':
      return `✗${effect.operationId}`
    case 'ask_node':
      return `ask:${effect.ask}`
  }
}

function words(effects: readonly Effect[]): string[] {
  return effects.map(word)
}

test('a create opens its operation and asks the node', () => {
  const event = { kind: 'create_requested', operationId: 'op1', expiresAtMs: undefined } as const
  const { state, effects } = step(undefined, event, 0, limits)
  expect(state).toEqual(creating)
  expect(words(effects)).toEqual(['+op1', 'ask:create'])
})

test.each([
  ['creating', creating, runs, 'running', ['✓op1']],
  ['creating', creating, fails, 'failed', ['✗op1']],
  ['creating', creating, { kind: 'create_refused', error: broken }, 'failed', ['✗op1']],
  ['creating', creating, doubtful, 'quarantined', ['✗op1']],
  ['creating', creating, absent, 'creating', []],
  ['creating', creating, { kind: 'node_asked', ask: 'create' }, 'creating', ['>op1']],
  ['creating', creating, { kind: 'node_asked', ask: 'delete' }, 'creating', []],
  ['creating', creating, { kind: 'delete_done' }, 'creating', []],
  ['creating', creating, remove, 'deleting', ['✗op1', '+op9', 'ask:delete']],
  ['running', running, fails, 'failed', []],
  ['running', running, absent, 'failed', []],
  ['running', running, doubtful, 'quarantined', []],
  ['running', running, runs, 'running', []],
  ['running', running, { kind: 'create_refused', error: broken }, 'running', []],
  ['running', running, remove, 'deleting', ['+op9', 'ask:delete']],
  ['failed', failed, runs, 'failed', []],
  ['failed', failed, doubtful, 'quarantined', []],
  ['failed', failed, remove, 'deleting', ['+op9', 'ask:delete']],
  ['deleting', deleting, runs, 'deleting', []],
  ['deleting', deleting, fails, 'deleting', []],
  ['deleting', deleting, { kind: 'node_asked', ask: 'delete' }, 'deleting', ['>op2']],
  ['deleting', deleting, { kind: 'delete_done' }, 'deleted', ['✓op2']],
  ['deleting', deleting, remove, 'deleting', []],
  ['deleting', deletingForNobody, remove, 'deleting', ['+op9', 'ask:delete']],
  ['deleting', deletingForNobody, { kind: 'delete_done' }, 'deleted', []],
  ['deleted', deleted, remove, 'deleted', ['+op9', '✓op9']],
  ['deleted', deleted, runs, 'deleted', ['ask:delete']],
  ['deleted', deleted, absent, 'deleted', []],
  ['deleted', deleted, { kind: 'delete_done' }, 'deleted', []],
  ['quarantined', quarantined, runs, 'quarantined', []],
  ['quarantined', quarantined, remove, 'deleted', ['+op9', '✓op9']],
] as const)('%s, then %#: a table of the life of a sandbox', (_from, state, event, to, effects) => {
  const next = step(state, event, 10, limits)
  expect(next.state?.phase.kind).toBe(to)
  expect(words(next.effects)).toEqual(effects)
})

test('a create that does not answer in time fails at its deadline, and the node is asked to clear up', () => {
  expect(step(creating, timePasses, 999, limits)).toEqual({ state: creating, effects: [] })
  const late = step(creating, timePasses, 1000, limits)
  expect(late.state?.phase.kind).toBe('failed')
  expect(words(late.effects)).toEqual(['✗op1', 'ask:delete'])
})

test('a delete that is not confirmed in time ends its operation, and goes on', () => {
  const late = step(deleting, timePasses, 2000, limits)
  expect(late.state).toEqual(deletingForNobody)
  expect(words(late.effects)).toEqual(['✗op2'])
  expect(words(step(late.state, timePasses, 9000, limits).effects)).toEqual([])
})

test.each([
  ['creating', creating, ['✗op1', 'ask:delete']],
  ['running', running, ['ask:delete']],
  ['failed', failed, ['ask:delete']],
] as const)('a sandbox that is %s ends when it expires', (_name, state, effects) => {
  const mortal = { ...state, expiresAtMs: 500 }
  expect(nextDeadlineMs(mortal)).toBe(500)
  expect(step(mortal, timePasses, 499, limits).effects).toEqual([])
  const ended = step(mortal, timePasses, 500, limits)
  expect(ended.state?.phase.kind).toBe('deleting')
  expect(words(ended.effects)).toEqual(effects)
})

test('the end of a sandbox can be moved and taken back', () => {
  const moved = step(running, { kind: 'expiry_set', expiresAtMs: 800 }, 0, limits)
  expect(moved.state?.expiresAtMs).toBe(800)
  const undone = step(moved.state, { kind: 'expiry_set', expiresAtMs: undefined }, 0, limits)
  expect(undone.state).toEqual(running)
  expect(nextDeadlineMs(running)).toBeUndefined()
})
