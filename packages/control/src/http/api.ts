/** What the routes are made of: their types, and everything they may reach. */
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type { Scope } from '@space/contract'
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import type { Logger } from 'pino'
import type { Sessions } from '../auth/sessions.ts'
import type { Caller, Tokens } from '../auth/tokens.ts'
import type { NodeApi } from '../node-link/node.ts'
import type { Templates } from '../node-link/templates.ts'
import type { Lifecycle } from '../operations/lifecycle.ts'
import type { Requests } from '../operations/requests.ts'
import type { Store } from '../store/store.ts'

export interface Api {
  readonly store: Store
  readonly lifecycle: Lifecycle
  readonly requests: Requests
  readonly tokens: Tokens
  readonly sessions: Sessions
  readonly templates: Templates
  readonly nodeApi: NodeApi
  readonly apiUrl: string
  readonly dataPlaneUrl: string
  readonly corsOrigins: readonly string[]
  readonly log: Logger
}

export type App = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The scope an endpoint asks for; without one and without `open` nobody may call it. */
    scope?: Scope
    /** Callable without a token. */
    open?: boolean
  }
  interface FastifyRequest {
    /** Who calls; set before the handler of every endpoint that asks for a scope. */
    caller: Caller | undefined
  }
}
