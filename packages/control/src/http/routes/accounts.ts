import { Account, AccountPage, CreateAccountRequest, PublicErrorEnvelope, ref } from '@space/contract'
import { Type } from 'typebox'
import { insertAccount, listAccounts } from '../../store/accounts.ts'
import { accountAnswer } from '../answers/account.ts'
import type { Api, App } from '../api.ts'
import { keyed, setOutcomeHeaders } from '../mutations.ts'
import { pageQuery, readPage, rowsFor, toPage } from '../paging.ts'

const tags = ['accounts']
const failure = { default: ref(PublicErrorEnvelope) }
const scope = 'admin'

/** Create and list. */
export function accountRoutes(app: App, api: Api): void {
  app.post(
    '/v1/accounts',
    {
      config: { scope },
      schema: {
        tags,
        summary: 'Create an account',
        body: ref(CreateAccountRequest),
        response: { 201: ref(Account), ...failure },
      },
    },
    async (request, reply) => {
      const outcome = await api.requests.atomic(keyed(request), async (db, ids) => {
        const row = await insertAccount(db, {
          id: ids('account'),
          name: request.body.name,
          createdAtMs: api.lifecycle.clock.nowMs(),
        })
        return { status: 201, body: accountAnswer(row) }
      })
      setOutcomeHeaders(reply, outcome)
      return reply.code(201).send(outcome.answer.body as Account)
    },
  )
  app.get(
    '/v1/accounts',
    {
      config: { scope },
      schema: {
        tags,
        summary: 'List accounts, newest first',
        querystring: Type.Object(pageQuery, { additionalProperties: false }),
        response: { 200: ref(AccountPage), ...failure },
      },
    },
    async (request) => {
      const page = readPage(request.query)
      return toPage(await listAccounts(api.store.read, rowsFor(page)), page, accountAnswer)
    },
  )
}
