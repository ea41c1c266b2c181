import {
  Operation,
  OperationPage,
  operationKinds,
  operationStates,
  PublicError,
  PublicErrorEnvelope,
  ref,
} from '@space/contract'
import { Type } from 'typebox'
import { awaitOperation } from '../../operations/await-operation.ts'
import { findOperation, listOperations } from '../../store/operations.ts'
import { operationAnswer } from '../answers/operation.ts'
import type { Api, App } from '../api.ts'
import { callerOf } from '../caller.ts'
import { clientGone, preferredWaitSeconds } from '../headers.ts'
import { pageQuery, readList, readPage, rowsFor, toPage } from '../paging.ts'

const tags = ['operations']
const failure = { default: ref(PublicErrorEnvelope) }

/** Get, with an optional wait, and list. */
export function operationRoutes(app: App, api: Api): void {
  app.get(
    '/v1/operations/:id',
    {
      config: { scope: 'sandboxes:read' },
      schema: {
        tags,
        summary: 'Get an operation',
        description: 'With `Prefer: wait=SECONDS` the answer comes when it ended or the time is up.',
        params: Type.Object({ id: Type.String() }),
        response: { 200: ref(Operation), ...failure },
      },
    },
    async (request, reply) => {
      const row = await findOperation(api.store.read, callerOf(request).accountId, request.params.id)
      if (!row)
        throw new PublicError(
          'not_found',
          'There is no such operation; they are kept 7 days after they ended.',
          {
            details: { field: 'id' },
          },
        )
      const seconds = preferredWaitSeconds(request)
      if (seconds === 0) return operationAnswer(row)
      reply.header('preference-applied', `wait=${seconds}`)
      return operationAnswer(await awaitOperation(api.lifecycle, row, seconds * 1000, clientGone(reply)))
    },
  )
  const words = Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())]))
  app.get(
    '/v1/operations',
    {
      config: { scope: 'sandboxes:read' },
      schema: {
        tags,
        summary: 'List operations, newest first',
        querystring: Type.Object(
          { ...pageQuery, sandbox: Type.Optional(Type.String()), state: words, kind: words },
          { additionalProperties: false },
        ),
        response: { 200: ref(OperationPage), ...failure },
      },
    },
    async (request) => {
      const { query } = request
      const page = readPage(query)
      const rows = await listOperations(api.store.read, {
        accountId: callerOf(request).accountId,
        sandboxId: query.sandbox,
        states: readList('state', query.state, operationStates),
        kinds: readList('kind', query.kind, operationKinds),
        ...rowsFor(page),
      })
      return toPage(rows, page, operationAnswer)
    },
  )
}
