import {
  CreatedToken,
  CreateTokenRequest,
  PublicError,
  PublicErrorEnvelope,
  ref,
  scopes,
  Token,
  TokenPage,
} from '@space/contract'
import { Type } from 'typebox'
import { checkExpiry } from '../../operations/create-sandbox.ts'
import { getAccount, getToken, listTokens, revokeToken } from '../../store/accounts.ts'
import { tokenAnswer } from '../answers/account.ts'
import type { Api, App } from '../api.ts'
import { callerOf } from '../caller.ts'
import { keyed, refuseBody, setOutcomeHeaders } from '../mutations.ts'
import { pageQuery, readPage, rowsFor, toPage } from '../paging.ts'

const tags = ['tokens']
const failure = { default: ref(PublicErrorEnvelope) }
const scope = 'admin'

/** Create, list, revoke. */
export function tokenRoutes(app: App, api: Api): void {
  createRoute(app, api)
  app.get(
    '/v1/tokens',
    {
      config: { scope },
      schema: {
        tags,
        summary: "List an account's tokens, newest first",
        querystring: Type.Object(
          { ...pageQuery, account: Type.Optional(Type.String()) },
          { additionalProperties: false },
        ),
        response: { 200: ref(TokenPage), ...failure },
      },
    },
    async (request) => {
      const page = readPage(request.query)
      const accountId = request.query.account ?? callerOf(request).accountId
      return toPage(await listTokens(api.store.read, accountId, rowsFor(page)), page, tokenAnswer)
    },
  )
  app.delete(
    '/v1/tokens/:id',
    {
      config: { scope },
      schema: {
        tags,
        summary: 'Revoke a token, at once and for good',
        params: Type.Object({ id: Type.String() }),
        response: { 200: ref(Token), ...failure },
      },
    },
    async (request, reply) => {
      refuseBody(request)
      const outcome = await api.requests.atomic(keyed(request), async (db) => {
        const row = await getToken(db, request.params.id)
        if (!row)
          throw new PublicError('not_found', 'There is no such token; GET /v1/tokens lists them.', {
            details: { field: 'id' },
          })
        await revokeToken(db, row.id, api.lifecycle.clock.nowMs())
        return { status: 200, body: tokenAnswer(row) }
      })
      setOutcomeHeaders(reply, outcome)
      return outcome.answer.body as Token
    },
  )
}

function createRoute(app: App, api: Api): void {
  app.post(
    '/v1/tokens',
    {
      config: { scope },
      schema: {
        tags,
        summary: 'Create a token',
        description: 'The answer holds its value, which is not shown again.',
        body: ref(CreateTokenRequest),
        response: { 201: ref(CreatedToken), ...failure },
      },
    },
    async (request, reply) => {
      const { body } = request
      const accountId = body.account ?? callerOf(request).accountId
      const expiresAtMs = checkExpiry(body.expires_at, api.lifecycle.clock.nowMs()) ?? null
      const outcome = await api.requests.atomic(keyed(request), async (db, ids) => {
        if (!(await getAccount(db, accountId)))
          throw new PublicError(
            'not_found',
            'account: there is no such account; GET /v1/accounts lists them.',
            {
              details: { field: 'account' },
            },
          )
        const { row } = await api.tokens.create(db, {
          id: ids('token'),
          accountId,
          name: body.name,
          scopes: body.scopes ?? scopes.filter((one) => one !== 'admin'),
          expiresAtMs,
        })
        return { status: 201, location: `/v1/tokens/${row.id}`, body: tokenAnswer(row) }
      })
      setOutcomeHeaders(reply, outcome)
      const token = outcome.answer.body as Token
      return reply.code(201).send({ ...token, value: api.tokens.valueOf(token.id) })
    },
  )
}
