import { type Static, Type } from 'typebox'
import { RecordedError } from './error.ts'
import { nullableRef, nullableString, nullableTime, oneOf, page, ref, time } from './parts.ts'
import { Sandbox } from './sandbox.ts'

export const operationKinds = [
  'create',
  'pause',
  'suspend',
  'wake',
  'delete',
  'fork',
  'snapshot',
  'rollback',
  'build',
] as const
export type OperationKind = (typeof operationKinds)[number]

export const operationStates = ['pending', 'running', 'succeeded', 'failed'] as const
export type OperationState = (typeof operationStates)[number]

export const OperationResult = Type.Object(
  {
    sandboxes: Type.Array(Type.String(), { description: 'Ids of the sandboxes it made or changed.' }),
    snapshot: nullableString(),
    template: nullableString(),
  },
  { $id: 'OperationResult' },
)

export const Operation = Type.Object(
  {
    id: Type.String(),
    kind: oneOf(operationKinds),
    state: oneOf(operationStates),
    sandbox_id: nullableString(),
    created_at: time(),
    started_at: nullableTime(),
    ended_at: nullableTime(),
    error: nullableRef(RecordedError),
    result: nullableRef(OperationResult),
  },
  { $id: 'Operation', description: 'The record of one asynchronous change; kept 7 days after it ended.' },
)
export type Operation = Static<typeof Operation>

export const OperationPage = page(Operation, 'OperationPage')
export type OperationPage = Static<typeof OperationPage>

export const OperationAnswer = Type.Object({ operation: ref(Operation) }, { $id: 'OperationAnswer' })
export type OperationAnswer = Static<typeof OperationAnswer>

export const CreateSandboxAnswer = Type.Object(
  { sandbox: ref(Sandbox), operation: ref(Operation) },
  { $id: 'CreateSandboxAnswer' },
)
export type CreateSandboxAnswer = Static<typeof CreateSandboxAnswer>
