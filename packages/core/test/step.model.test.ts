/**
 * Drives the life of a sandbox with arbitrary interleavings: applications, a node that answers late, twice or never,
 * clocks that jump. Whatever comes, the invariants of `sandbox/state.ts` hold.
 */
import type { ErrorBody } from '@space/contract'
import { type NodeAsk, nextDeadlineMs, type SandboxEvent, type SandboxState, step } from '@space/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'

const limits = { createDeadlineMs: 50, deleteDeadlineMs: 70 }
const error: ErrorBody = { code: 'internal', message: 'It broke.', details: {}, retryable: false }

type Action =
  | { readonly do: 'event'; readonly event: SandboxEvent; readonly afterMs: number }
  | { readonly do: 'delete'; readonly afterMs: number }

const observation = fc.oneof(
  fc.constant({ state: 'creating' } as const),
  fc.constant({ state: 'running', startedAtMs: 1 } as const),
  fc.constant({ state: 'failed', error } as const),
  fc.constant({ state: 'quarantined', error } as const),
  fc.constant({ state: 'absent' } as const),
)
const ask = fc.constantFrom<NodeAsk>('create', 'delete')
const event: fc.Arbitrary<SandboxEvent> = fc.oneof(
  observation.map((seen) => ({ kind: 'observed', observation: seen }) as const),
  ask.map((asked) => ({ kind: 'node_asked', ask: asked }) as const),
  fc.constant({ kind: 'create_refused', error } as const),
  fc.constant({ kind: 'delete_done' } as const),
  fc.constant({ kind: 'deadline_reached' } as const),
  fc.constant({ kind: 'create_requested', operationId: 'again', expiresAtMs: undefined } as const),
  fc
    .option(fc.integer({ min: 0, max: 400 }), { nil: undefined })
    .map((expiresAtMs) => ({ kind: 'expiry_set', expiresAtMs }) as const),
)
const afterMs = fc.integer({ min: 0, max: 60 })
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('event' as const), event, afterMs }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const), afterMs }) },
)

class World {
  nowMs = 0
  state: SandboxState | undefined
  lastAsk: NodeAsk | undefined
  readonly open = new Set<string>()
  readonly ended = new Set<string>()

  apply(happening: SandboxEvent): void {
    const before = this.state
    const { state, effects } = step(before, happening, this.nowMs, limits)
    if (before !== undefined) expect(state).toBeDefined()
    if (before?.phase.kind === 'deleted') expect(state?.phase).toEqual(before.phase)
    this.state = state
    for (const effect of effects) {
      switch (effect.kind) {
        case 'operation_opened':
          expect(this.open.has(effect.operationId) || this.ended.has(effect.operationId)).toBe(false)
          this.open.add(effect.operationId)
          break
        case 'operation_begun':
          expect(this.open.has(effect.operationId)).toBe(true)
          break
        case 'operation_succeeded':
        case 'operation_failed':
          expect(this.open.delete(effect.operationId)).toBe(true)
          this.ended.add(effect.operationId)
          break
        case 'ask_node':
          if (effect.ask === 'create') expect(state?.phase.kind).toBe('creating')
          this.lastAsk = effect.ask
          break
      }
    }
    this.check()
  }

  check(): void {
    const phase = this.state?.phase
    const waiting =
      phase && 'operationId' in phase && phase.operationId !== undefined ? [phase.operationId] : []
    expect([...this.open]).toEqual(waiting)
    if (phase?.kind === 'creating') expect(this.lastAsk).toBe('create')
    if (phase?.kind === 'deleting') expect(this.lastAsk).toBe('delete')
  }

  run(actions: readonly Action[]): void {
    this.apply({ kind: 'create_requested', operationId: 'create', expiresAtMs: undefined })
    actions.forEach((one, index) => {
      this.nowMs += one.afterMs
      this.apply(one.do === 'event' ? one.event : { kind: 'delete_requested', operationId: `delete${index}` })
    })
  }
}

test('A2: operations open once, end once, and only the one that is waited for is open', () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 40 }), (actions) => {
      const world = new World()
      world.run(actions)
      expect(world.ended.size + world.open.size).toBeGreaterThan(0)
    }),
    { numRuns: 1000 },
  )
})

test('A2: without a word from the node, time alone ends every operation', () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 25 }), (actions) => {
      const world = new World()
      world.run(actions)
      for (let turn = 0; turn < 4 && world.state; turn++) {
        const dueMs = nextDeadlineMs(world.state)
        if (dueMs === undefined) break
        world.nowMs = Math.max(world.nowMs, dueMs)
        world.apply({ kind: 'deadline_reached' })
      }
      expect([...world.open]).toEqual([])
    }),
    { numRuns: 500 },
  )
})

test('D2: from every state a delete that the node confirms leads to deleted', () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 25 }), (actions) => {
      const world = new World()
      world.run(actions)
      world.apply({ kind: 'delete_requested', operationId: 'last' })
      if (world.state?.phase.kind === 'deleting') world.apply({ kind: 'delete_done' })
      expect(world.state?.phase.kind).toBe('deleted')
      expect([...world.open]).toEqual([])
    }),
    { numRuns: 500 },
  )
})

test('a deadline that was passed is not due again', () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 25 }), (actions) => {
      const world = new World()
      world.run(actions)
      world.apply({ kind: 'deadline_reached' })
      const dueMs = world.state ? nextDeadlineMs(world.state) : undefined
      expect(dueMs === undefined || dueMs > world.nowMs).toBe(true)
    }),
    { numRuns: 500 },
  )
})
