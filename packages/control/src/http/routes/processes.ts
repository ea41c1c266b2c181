import {
  Process,
  ProcessPage,
  PublicError,
  PublicErrorEnvelope,
  ref,
  SessionAnswer,
  SignalRequest,
  signalNumber,
} from '@space/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { Processes, type SignalScope } from '../../node-link/processes.ts'
import { sandboxMissing } from '../../operations/await-running.ts'
import { newSession } from '../../operations/create-command.ts'
import { listProcesses } from '../../store/processes.ts'
import { findSandbox } from '../../store/sandboxes.ts'
import type { SandboxRow } from '../../store/schema.ts'
import { insertSession } from '../../store/sessions.ts'
import { processAnswer, sessionAnswer } from '../answers/process.ts'
import type { Api, App } from '../api.ts'
import { callerOf } from '../caller.ts'
import { keyed, refuseBody, setOutcomeHeaders } from '../mutations.ts'
import { pageQuery, readPage, rowsFor, toPage } from '../paging.ts'

const tags = ['processes']
const failure = { default: ref(PublicErrorEnvelope) }
const params = Type.Object({ id: Type.String(), process: Type.String() })
const sigkill = 9
const nodeCursor = 'n'

/** List, get, kill, signal, and further sessions. */
export function processRoutes(app: App, api: Api): void {
  const processes = new Processes(api.store, api.nodeApi)
  readRoutes(app, api, processes)
  signalRoutes(app, api, processes)
  sessionRoute(app, api, processes)
}

function readRoutes(app: App, api: Api, processes: Processes): void {
  app.get(
    '/v1/sandboxes/:id/processes',
    {
      config: { scope: 'sandboxes:read' },
      schema: {
        tags,
        summary: 'List processes, newest first',
        params: Type.Object({ id: Type.String() }),
        querystring: Type.Object(pageQuery, { additionalProperties: false }),
        response: { 200: ref(ProcessPage), ...failure },
      },
    },
    async (request) => {
      const sandbox = await sandboxOf(api, request)
      const { limit, cursor } = request.query
      const ofNode = cursor?.startsWith(nodeCursor) ? cursor.slice(nodeCursor.length) : undefined
      const page = readPage({
        ...(limit === undefined ? {} : { limit }),
        ...(ofNode === undefined && cursor !== undefined ? { cursor } : {}),
      })
      if (cursor === undefined || ofNode !== undefined) {
        const listed = await processes.list(sandbox, page.limit, ofNode ?? '')
        if (listed) {
          const next = listed.nextCursor === '' ? null : nodeCursor + listed.nextCursor
          return { items: listed.rows.map(processAnswer), next_cursor: next }
        }
      }
      const rows = await listProcesses(api.store.read, { sandboxId: sandbox.id, ...rowsFor(page) })
      return toPage(rows, page, processAnswer)
    },
  )
  app.get(
    '/v1/sandboxes/:id/processes/:process',
    {
      config: { scope: 'sandboxes:read' },
      schema: { tags, summary: 'Get a process', params, response: { 200: ref(Process), ...failure } },
    },
    async (request) =>
      processAnswer(await processes.get(await sandboxOf(api, request), request.params.process)),
  )
}

function signalRoutes(app: App, api: Api, processes: Processes): void {
  const send = async (
    request: FastifyRequest<{ Params: { id: string; process: string } }>,
    reply: FastifyReply,
    signal: number,
    scope: SignalScope,
  ) => {
    const outcome = await api.requests.staged(keyed(request), async () => {
      const sandbox = await sandboxOf(api, request)
      const row = await processes.signal(sandbox, request.params.process, signal, scope)
      return { status: 200, body: processAnswer(row) }
    })
    setOutcomeHeaders(reply, outcome)
    return outcome.answer.body as Process
  }
  app.post(
    '/v1/sandboxes/:id/processes/:process/kill',
    {
      config: { scope: 'commands:run' },
      schema: {
        tags,
        summary: 'Kill a process and all its descendants',
        params,
        response: { 200: ref(Process), ...failure },
      },
    },
    async (request, reply) => {
      refuseBody(request)
      return await send(request, reply, sigkill, 'tree')
    },
  )
  app.post(
    '/v1/sandboxes/:id/processes/:process/signal',
    {
      config: { scope: 'commands:run' },
      schema: {
        tags,
        summary: 'Send a signal',
        params,
        body: ref(SignalRequest),
        response: { 200: ref(Process), ...failure },
      },
    },
    async (request, reply) => {
      const signal = signalNumber(request.body.signal)
      if (signal === undefined)
        throw new PublicError(
          'invalid_request',
          'signal is not a Linux signal: give a name like SIGTERM or a number from 1 to 64.',
          { details: { field: 'signal' } },
        )
      return await send(request, reply, signal, request.body.scope ?? 'group')
    },
  )
}

function sessionRoute(app: App, api: Api, processes: Processes): void {
  app.post(
    '/v1/sandboxes/:id/processes/:process/sessions',
    {
      config: { scope: 'commands:run' },
      schema: {
        tags,
        summary: 'A new session for a process that exists',
        params,
        response: { 201: ref(SessionAnswer), ...failure },
      },
    },
    async (request, reply) => {
      refuseBody(request)
      const caller = callerOf(request)
      const sandbox = await sandboxOf(api, request)
      const process = await processes.get(sandbox, request.params.process)
      const outcome = await api.requests.atomic(keyed(request), async (db, ids) => {
        const session = newSession(api.lifecycle, caller, sandbox.id, process.id, ids('session'))
        await insertSession(db, session)
        return {
          status: 201,
          body: { session: sessionAnswer(session.id, api.dataPlaneUrl, session.created_at) },
        }
      })
      setOutcomeHeaders(reply, outcome)
      const { session } = outcome.answer.body as SessionAnswer
      return reply.code(201).send({ session: { ...session, token: api.sessions.valueOf(session.id) } })
    },
  )
}

async function sandboxOf(api: Api, request: FastifyRequest<{ Params: { id: string } }>): Promise<SandboxRow> {
  const { id } = request.params
  const row = await findSandbox(api.store.read, callerOf(request).accountId, id)
  if (!row) throw sandboxMissing(id)
  return row
}
