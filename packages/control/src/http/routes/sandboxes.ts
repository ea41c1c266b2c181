import {
  CreateSandboxAnswer,
  CreateSandboxRequest,
  OperationAnswer,
  PublicErrorEnvelope,
  ref,
  Sandbox,
  SandboxPage,
  sandboxStates,
  UpdateSandboxRequest,
} from '@space/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { spellings } from '../../node-link/templates.ts'
import { awaitOperation } from '../../operations/await-operation.ts'
import { sandboxMissing } from '../../operations/await-running.ts'
import { checkCreate, createSandbox } from '../../operations/create-sandbox.ts'
import { deleteSandbox } from '../../operations/delete-sandbox.ts'
import { updateSandboxSettings } from '../../operations/update-sandbox.ts'
import { findOperation } from '../../store/operations.ts'
import { findSandbox, listSandboxes } from '../../store/sandboxes.ts'
import { operationAnswer } from '../answers/operation.ts'
import { sandboxAnswer } from '../answers/sandbox.ts'
import type { Api, App } from '../api.ts'
import { callerOf } from '../caller.ts'
import { clientGone, preferredWaitSeconds } from '../headers.ts'
import { keyed, refuseBody, setOutcomeHeaders } from '../mutations.ts'
import { pageQuery, readList, readPage, rowsFor, toPage } from '../paging.ts'

const tags = ['sandboxes']
const failure = { default: ref(PublicErrorEnvelope) }
const params = Type.Object({ id: Type.String() })

/** Create, list, get, update, delete. */
export function sandboxRoutes(app: App, api: Api): void {
  createRoute(app, api)
  listRoute(app, api)
  getRoute(app, api)
  updateRoute(app, api)
  deleteRoute(app, api)
}

function createRoute(app: App, api: Api): void {
  const { lifecycle, store } = api
  app.post(
    '/v1/sandboxes',
    {
      config: { scope: 'sandboxes:write' },
      schema: {
        tags,
        summary: 'Create a sandbox',
        body: ref(CreateSandboxRequest),
        response: { 202: ref(CreateSandboxAnswer), ...failure },
      },
    },
    async (request, reply) => {
      const caller = callerOf(request)
      checkCreate(request.body, lifecycle.clock.nowMs())
      const template = await api.templates.resolve(request.body.template)
      const outcome = await api.requests.atomic(keyed(request), async (db, ids) => {
        const made = await createSandbox(db, lifecycle, caller, request.body, template, ids)
        return {
          status: 202,
          location: `/v1/sandboxes/${made.row.id}`,
          operationId: made.operation.id,
          body: {
            sandbox: sandboxAnswer(made.row, api.dataPlaneUrl),
            operation: operationAnswer(made.operation),
          },
        }
      })
      const body = outcome.answer.body as CreateSandboxAnswer
      lifecycle.bell.asked()
      setOutcomeHeaders(reply, outcome)
      const waited = await waitIfPreferred(api, request, reply, outcome.answer.operationId)
      if (!waited) return reply.code(202).send(body)
      const row = await findSandbox(store.read, caller.accountId, body.sandbox.id)
      return reply.code(202).send({
        sandbox: row ? sandboxAnswer(row, api.dataPlaneUrl) : body.sandbox,
        operation: waited,
      })
    },
  )
}

function listRoute(app: App, api: Api): void {
  const words = Type.Union([Type.String(), Type.Array(Type.String())])
  app.get(
    '/v1/sandboxes',
    {
      config: { scope: 'sandboxes:read' },
      schema: {
        tags,
        summary: 'List sandboxes, newest first',
        description:
          'Deleted ones are listed only with `state=deleted`. `metadata.<key>=<value>` may be given several times.',
        querystring: Type.Object(
          { ...pageQuery, state: Type.Optional(words), template: Type.Optional(words) },
          { additionalProperties: false, patternProperties: { '^metadata\\..+$': { type: 'string' } } },
        ),
        response: { 200: ref(SandboxPage), ...failure },
      },
    },
    async (request) => {
      const { query } = request
      const page = readPage(query)
      const templates = query.template === undefined ? undefined : [query.template].flat()
      const rows = await listSandboxes(api.store.read, {
        accountId: callerOf(request).accountId,
        states: readList('state', query.state, sandboxStates),
        templates: templates?.flatMap(spellings),
        metadata: metadataOf(query as Record<string, unknown>),
        ...rowsFor(page),
      })
      return toPage(rows, page, (row) => sandboxAnswer(row, api.dataPlaneUrl))
    },
  )
}

function getRoute(app: App, api: Api): void {
  app.get(
    '/v1/sandboxes/:id',
    {
      config: { scope: 'sandboxes:read' },
      schema: { tags, summary: 'Get a sandbox', params, response: { 200: ref(Sandbox), ...failure } },
    },
    async (request) => {
      const row = await findSandbox(api.store.read, callerOf(request).accountId, request.params.id)
      if (!row) throw sandboxMissing(request.params.id)
      return sandboxAnswer(row, api.dataPlaneUrl)
    },
  )
}

function updateRoute(app: App, api: Api): void {
  app.patch(
    '/v1/sandboxes/:id',
    {
      config: { scope: 'sandboxes:write' },
      schema: {
        tags,
        summary: 'Change metadata and lifetime',
        params,
        body: ref(UpdateSandboxRequest),
        response: { 200: ref(Sandbox), ...failure },
      },
    },
    async (request, reply) => {
      const { accountId } = callerOf(request)
      const outcome = await api.requests.atomic(keyed(request), async (db) => {
        const before = await findSandbox(db, accountId, request.params.id)
        if (!before) throw sandboxMissing(request.params.id)
        const row = await updateSandboxSettings(db, api.lifecycle, before, request.body)
        return { status: 200, body: sandboxAnswer(row, api.dataPlaneUrl) }
      })
      setOutcomeHeaders(reply, outcome)
      return outcome.answer.body as Sandbox
    },
  )
}

function deleteRoute(app: App, api: Api): void {
  app.delete(
    '/v1/sandboxes/:id',
    {
      config: { scope: 'sandboxes:write' },
      schema: {
        tags,
        summary: 'Delete a sandbox',
        params,
        response: { 202: ref(OperationAnswer), ...failure },
      },
    },
    async (request, reply) => {
      refuseBody(request)
      const { accountId } = callerOf(request)
      const outcome = await api.requests.atomic(keyed(request), async (db, ids) => {
        const before = await findSandbox(db, accountId, request.params.id)
        if (!before) throw sandboxMissing(request.params.id)
        const operation = await deleteSandbox(db, api.lifecycle, before, ids)
        return {
          status: 202,
          location: `/v1/operations/${operation.id}`,
          operationId: operation.id,
          body: { operation: operationAnswer(operation) },
        }
      })
      api.lifecycle.bell.ring(request.params.id)
      api.lifecycle.bell.asked()
      setOutcomeHeaders(reply, outcome)
      const waited = await waitIfPreferred(api, request, reply, outcome.answer.operationId)
      return reply.code(202).send(waited ? { operation: waited } : (outcome.answer.body as OperationAnswer))
    },
  )
}

/** Waits for an operation when the caller prefers to; undefined when it does not. */
async function waitIfPreferred(
  api: Api,
  request: FastifyRequest,
  reply: FastifyReply,
  operationId: string | undefined,
) {
  const seconds = preferredWaitSeconds(request)
  if (seconds === 0 || operationId === undefined) return undefined
  const operation = await findOperation(api.store.read, callerOf(request).accountId, operationId)
  if (!operation) return undefined
  reply.header('preference-applied', `wait=${seconds}`)
  return operationAnswer(await awaitOperation(api.lifecycle, operation, seconds * 1000, clientGone(reply)))
}

function metadataOf(query: Record<string, unknown>): Record<string, string> {
  const prefix = 'metadata.'
  return Object.fromEntries(
    Object.entries(query)
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, value]) => [name.slice(prefix.length), String(value)]),
  )
}
