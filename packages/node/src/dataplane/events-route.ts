/** `GET /v1/sessions/{id}/events`: attaching starts the process; every further attach joins it. */
import { isId, PublicError } from '@space/contract'
import { AuthorizeRequest_Action } from '@space/contract/node-link'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { comparePositions, type Journal, type Position, parsePosition } from '../journal/index.ts'
import { watchAccess } from './access-watch.ts'
import { bearerOf } from './bearer.ts'
import type { DataPlaneOptions } from './data-plane.ts'
import { sendEvents } from './event-stream.ts'
import { wakeAndRun } from './wake.ts'

interface EventsRequest {
  Params: { id: string }
  Querystring: { from_offset?: string }
}

export function eventsRoute(app: FastifyInstance, options: DataPlaneOptions, closing: AbortSignal): void {
  const { authorizer, processes } = options
  app.get<EventsRequest>('/v1/sessions/:id/events', async (request, reply) => {
    const token = bearerOf(request.headers.authorization)
    const wanted = { action: AuthorizeRequest_Action.SESSION, sessionId: sessionIdOf(request.params.id) }
    const { sandboxId, processId } = await authorizer.allow(token, wanted)
    const from = wantedPosition(request)
    const journal = await wakeAndRun(options, sandboxId, () => processes.attach(sandboxId, processId))
    if (wasDelivered(journal, from)) return await reply.code(204).send()
    reply.hijack()
    const access = watchAccess(() => authorizer.ask(token, wanted))
    try {
      await sendEvents({
        response: reply.raw,
        journal,
        from: from.position,
        headers: { 'x-request-id': request.id, 'x-accel-buffering': 'no' },
        signal: AbortSignal.any([access.signal, closing]),
      })
    } catch (error) {
      request.log.error({ err: error, process: processId }, 'a stream broke off')
    } finally {
      access.stop()
    }
    return reply
  })
}

/** Throws `not_found` for what is no session id at all. */
export function sessionIdOf(id: string): string {
  if (!isId('session', id)) throw new PublicError('not_found', 'There is no such session.')
  return id
}

interface WantedPosition {
  readonly position: Position
  /** It is where an earlier stream of the same client ended. */
  readonly resumed: boolean
}

function wantedPosition(request: FastifyRequest<EventsRequest>): WantedPosition {
  const lastEventId = request.headers['last-event-id']
  if (typeof lastEventId === 'string' && lastEventId !== '') {
    const position = parsePosition(lastEventId)
    if (position === undefined)
      throw invalid('Last-Event-ID', 'Last-Event-ID is no id of this stream: leave it out.')
    return { position, resumed: true }
  }
  const fromOffset = request.query.from_offset ?? '0'
  const offset = /^\d{1,16}$/.test(fromOffset) ? Number(fromOffset) : Number.NaN
  if (!Number.isSafeInteger(offset))
    throw invalid('from_offset', 'from_offset is no offset: send a whole number from 0 on.')
  return { position: { epoch: 1, offset, n: 0 }, resumed: false }
}

/** Whether the client already has `process_exited`: then it is told to stop coming back. */
function wasDelivered(journal: Journal, { position, resumed }: WantedPosition): boolean {
  const { endedAt } = journal
  return (
    resumed &&
    endedAt !== undefined &&
    position.epoch === endedAt.epoch &&
    comparePositions(position, endedAt) >= 0
  )
}

function invalid(field: string, message: string): PublicError {
  return new PublicError('invalid_request', message, { details: { field } })
}
