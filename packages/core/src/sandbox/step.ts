/**
 * The whole life of a sandbox as one total function: no clock, no I/O, no throw. What does not fit the phase changes
 * nothing, so events may come late, twice or out of order.
 */
import type { ErrorBody } from '@space/contract'
import type { Effect, Observation, SandboxEvent } from './events.ts'
import type { Creating, LifecycleLimits, Phase, SandboxState } from './state.ts'

export interface Step {
  /** Undefined only before `create_requested`. */
  readonly state: SandboxState | undefined
  readonly effects: readonly Effect[]
}

/** Decides what an event means for a sandbox: its next state, and what must be done because of it. */
export function step(
  state: SandboxState | undefined,
  event: SandboxEvent,
  nowMs: number,
  limits: LifecycleLimits,
): Step {
  if (state === undefined)
    return event.kind === 'create_requested' ? open(event, nowMs, limits) : nothing(state)
  switch (event.kind) {
    case 'create_requested':
      return nothing(state)
    case 'delete_requested':
      return requestDelete(state, event.operationId, nowMs, limits)
    case 'expiry_set':
      return { state: { ...state, expiresAtMs: event.expiresAtMs }, effects: [] }
    case 'node_asked':
      return begin(state, event.ask)
    case 'observed':
      return observe(state, event.observation)
    case 'create_refused':
      return state.phase.kind === 'creating'
        ? failCreate(state, state.phase, event.error, [])
        : nothing(state)
    case 'delete_done':
      return finishDelete(state, nowMs)
    case 'deadline_reached':
      return passTime(state, nowMs, limits)
  }
}

function open(
  event: Extract<SandboxEvent, { kind: 'create_requested' }>,
  nowMs: number,
  limits: LifecycleLimits,
): Step {
  const { operationId, expiresAtMs } = event
  const phase: Phase = { kind: 'creating', operationId, deadlineMs: nowMs + limits.createDeadlineMs }
  return {
    state: { phase, expiresAtMs },
    effects: [
      { kind: 'operation_opened', operationId, operation: 'create' },
      { kind: 'ask_node', ask: 'create' },
    ],
  }
}

function requestDelete(
  state: SandboxState,
  operationId: string,
  nowMs: number,
  limits: LifecycleLimits,
): Step {
  const { phase } = state
  const opened: Effect = { kind: 'operation_opened', operationId, operation: 'delete' }
  const succeeded: Effect = { kind: 'operation_succeeded', operationId }
  switch (phase.kind) {
    case 'deleted':
      return { state, effects: [opened, succeeded] }
    case 'quarantined':
      return enter(state, { kind: 'deleted', deletedAtMs: nowMs }, [opened, succeeded])
    case 'deleting':
      if (phase.operationId !== undefined) return nothing(state)
      return enter(state, deleting(operationId, nowMs, limits), [opened, { kind: 'ask_node', ask: 'delete' }])
    case 'creating':
    case 'running':
    case 'failed':
      return enter(state, deleting(operationId, nowMs, limits), [
        ...abandoned(phase, 'The sandbox was deleted before it ran.'),
        opened,
        { kind: 'ask_node', ask: 'delete' },
      ])
  }
}

function begin(state: SandboxState, ask: 'create' | 'delete'): Step {
  const { phase } = state
  const fits =
    (phase.kind === 'creating' && ask === 'create') || (phase.kind === 'deleting' && ask === 'delete')
  if (!fits || phase.operationId === undefined) return nothing(state)
  return { state, effects: [{ kind: 'operation_begun', operationId: phase.operationId }] }
}

function observe(state: SandboxState, observation: Observation): Step {
  const { phase } = state
  switch (phase.kind) {
    case 'creating':
      if (observation.state === 'running')
        return enter(state, { kind: 'running', startedAtMs: observation.startedAtMs }, [
          { kind: 'operation_succeeded', operationId: phase.operationId },
        ])
      if (observation.state === 'failed') return failCreate(state, phase, observation.error, [])
      if (observation.state === 'quarantined')
        return enter(state, { kind: 'quarantined', error: observation.error }, [
          { kind: 'operation_failed', operationId: phase.operationId, error: observation.error },
        ])
      return nothing(state)
    case 'running':
      if (observation.state === 'failed')
        return enter(state, { kind: 'failed', error: observation.error }, [])
      if (observation.state === 'absent') return enter(state, { kind: 'failed', error: machineLost }, [])
      if (observation.state === 'quarantined')
        return enter(state, { kind: 'quarantined', error: observation.error }, [])
      return nothing(state)
    case 'deleted':
      // A node that came back with something of a deleted sandbox is asked again: nothing may be left (D1).
      if (observation.state === 'absent' || observation.state === 'quarantined') return nothing(state)
      return { state, effects: [{ kind: 'ask_node', ask: 'delete' }] }
    case 'failed':
      if (observation.state === 'quarantined')
        return enter(state, { kind: 'quarantined', error: observation.error }, [])
      return nothing(state)
    case 'deleting':
    case 'quarantined':
      return nothing(state)
  }
}

function finishDelete(state: SandboxState, nowMs: number): Step {
  const { phase } = state
  if (phase.kind !== 'deleting') return nothing(state)
  const { operationId } = phase
  return enter(
    state,
    { kind: 'deleted', deletedAtMs: nowMs },
    operationId === undefined ? [] : [{ kind: 'operation_succeeded', operationId }],
  )
}

function passTime(state: SandboxState, nowMs: number, limits: LifecycleLimits): Step {
  const { phase, expiresAtMs } = state
  switch (phase.kind) {
    case 'creating':
    case 'running':
    case 'failed': {
      if (expiresAtMs !== undefined && nowMs >= expiresAtMs)
        return enter(state, deleting(undefined, nowMs, limits), [
          ...abandoned(phase, 'The sandbox expired before it ran.'),
          { kind: 'ask_node', ask: 'delete' },
        ])
      if (phase.kind !== 'creating' || nowMs < phase.deadlineMs) return nothing(state)
      // The node may still be making it: it is asked to take away what it has.
      return failCreate(state, phase, createTimedOut, [{ kind: 'ask_node', ask: 'delete' }])
    }
    case 'deleting': {
      const { operationId } = phase
      if (operationId === undefined || nowMs < phase.deadlineMs) return nothing(state)
      return enter(state, { ...phase, operationId: undefined }, [
        { kind: 'operation_failed', operationId, error: deleteTimedOut },
      ])
    }
    case 'deleted':
    case 'quarantined':
      return nothing(state)
  }
}

function failCreate(state: SandboxState, phase: Creating, error: ErrorBody, more: readonly Effect[]): Step {
  return enter(state, { kind: 'failed', error }, [
    { kind: 'operation_failed', operationId: phase.operationId, error },
    ...more,
  ])
}

/** A create that is overtaken ends as failed, and says by what. */
function abandoned(phase: Phase, message: string): readonly Effect[] {
  if (phase.kind !== 'creating') return []
  const error: ErrorBody = { code: 'conflict', message, details: { reason: 'overtaken' }, retryable: false }
  return [{ kind: 'operation_failed', operationId: phase.operationId, error }]
}

function deleting(operationId: string | undefined, nowMs: number, limits: LifecycleLimits): Phase {
  return { kind: 'deleting', operationId, deadlineMs: nowMs + limits.deleteDeadlineMs }
}

function enter(state: SandboxState, phase: Phase, effects: readonly Effect[]): Step {
  return { state: { ...state, phase }, effects }
}

function nothing(state: SandboxState | undefined): Step {
  return { state, effects: [] }
}

const machineLost: ErrorBody = {
  code: 'failed_precondition',
  message: 'The node no longer holds this sandbox: delete it and create another.',
  details: { reason: 'machine_lost' },
  retryable: false,
}

const createTimedOut: ErrorBody = {
  code: 'service_unavailable',
  message: 'The sandbox did not start in time: delete it and create another.',
  details: { reason: 'create_timed_out' },
  retryable: true,
}

const deleteTimedOut: ErrorBody = {
  code: 'service_unavailable',
  message:
    'The node has not confirmed the deletion in time; SPACE goes on trying. Ask again with another delete.',
  details: { reason: 'delete_timed_out' },
  retryable: true,
}
