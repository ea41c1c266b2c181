import {
  type CommandAnswer,
  CommandAnswer as CommandAnswerSchema,
  CommandRequest,
  checkCommand,
  PublicErrorEnvelope,
  ref,
} from '@space/contract'
import { Type } from 'typebox'
import { awaitRunning } from '../../operations/await-running.ts'
import { createCommand } from '../../operations/create-command.ts'
import { processAnswer, sessionAnswer } from '../answers/process.ts'
import type { Api, App } from '../api.ts'
import { callerOf } from '../caller.ts'
import { clientGone } from '../headers.ts'
import { keyed, setOutcomeHeaders } from '../mutations.ts'

/** A command: assigns the process id and gives the session that starts it. */
export function commandRoutes(app: App, api: Api): void {
  app.post(
    '/v1/sandboxes/:id/commands',
    {
      config: { scope: 'commands:run' },
      schema: {
        tags: ['processes'],
        summary: 'Create a command',
        description:
          'Attaching to the session starts the process. A sandbox that is still being created is waited for.',
        params: Type.Object({ id: Type.String() }),
        body: ref(CommandRequest),
        response: { 201: ref(CommandAnswerSchema), default: ref(PublicErrorEnvelope) },
      },
    },
    async (request, reply) => {
      const caller = callerOf(request)
      checkCommand(request.body)
      const outcome = await api.requests.staged(keyed(request), async (ids) => {
        const sandbox = await awaitRunning(
          api.lifecycle,
          caller.accountId,
          request.params.id,
          clientGone(reply),
        )
        const { process, session } = await createCommand(
          api.lifecycle,
          api.nodeApi,
          caller,
          sandbox,
          request.body,
          ids,
        )
        return {
          status: 201,
          location: `/v1/sandboxes/${sandbox.id}/processes/${process.id}`,
          body: {
            process: processAnswer(process),
            session: sessionAnswer(session.id, api.dataPlaneUrl, session.created_at),
          },
        }
      })
      setOutcomeHeaders(reply, outcome)
      const { process, session } = outcome.answer.body as CommandAnswer
      const token = api.sessions.valueOf(session.id)
      return reply.code(201).send({ process, session: { ...session, token } })
    },
  )
}
