import { PublicError } from '@space/contract'
import type { FastifyRequest } from 'fastify'
import { type Caller, requireScope, type Tokens } from '../auth/tokens.ts'
import { bearerOf } from './headers.ts'

/** Lets a request pass when its endpoint is open or its token has the scope; an endpoint that names none is closed. */
export async function authorize(request: FastifyRequest, tokens: Tokens): Promise<void> {
  const { scope, open } = request.routeOptions.config
  if (open === true || request.is404) return
  const caller = await tokens.authenticate(bearerOf(request))
  if (scope === undefined) throw new PublicError('forbidden', 'Nobody may call this endpoint.')
  requireScope(caller, scope)
  request.caller = caller
}

/** The caller of an endpoint that asks for a scope. */
export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new PublicError('internal', 'An endpoint was called without a caller.')
  return request.caller
}
