import { limits, parseBearer } from '@space/contract'
import { sessionEndsAtMs } from '@space/core'
import type { Clock } from '../clock.ts'
import { getToken } from '../store/accounts.ts'
import { findProcess } from '../store/processes.ts'
import { getSandbox } from '../store/sandboxes.ts'
import type { SessionRow } from '../store/schema.ts'
import { getSession, markAttached } from '../store/sessions.ts'
import type { Store } from '../store/store.ts'
import { bearerValue, sameText } from './bearer.ts'
import type { BearerKey } from './keys.ts'
import { isValid, readScopes } from './tokens.ts'

export type SessionVerdict =
  | { readonly allowed: true; readonly session: SessionRow; readonly scopes: readonly string[] }
  | { readonly allowed: false; readonly code: 'unauthorized' | 'not_found' }

const unauthorized: SessionVerdict = { allowed: false, code: 'unauthorized' }
const notFound: SessionVerdict = { allowed: false, code: 'not_found' }

/**
 * Says whether a session token opens a session now. It ends with its sandbox and with the API token that made it,
 * when nobody attached in time, and when the output of its process is no longer kept.
 */
export class Sessions {
  readonly #store: Store
  readonly #key: BearerKey
  readonly #clock: Clock
  readonly #journalMs: number

  constructor(store: Store, key: BearerKey, clock: Clock, journalMs: number) {
    this.#store = store
    this.#key = key
    this.#clock = clock
    this.#journalMs = journalMs
  }

  /** The token that opens a session. */
  valueOf(sessionId: string): string {
    return bearerValue(this.#key, 'session', sessionId)
  }

  /** Judges a bearer value for a session; the first that is allowed counts as its attach. */
  async judge(value: string, sessionId: string): Promise<SessionVerdict> {
    const bearer = parseBearer(value)
    if (bearer?.kind !== 'session' || !sameText(value, this.valueOf(bearer.id))) return unauthorized
    if (sessionId !== '' && sessionId !== bearer.id) return notFound
    const session = await getSession(this.#store.read, bearer.id)
    if (!session) return unauthorized
    const [token, sandbox, process] = await Promise.all([
      getToken(this.#store.read, session.token_id),
      getSandbox(this.#store.read, session.sandbox_id),
      findProcess(this.#store.read, session.sandbox_id, session.process_id),
    ])
    const nowMs = this.#clock.nowMs()
    if (!token || !isValid(token, nowMs)) return unauthorized
    if (!sandbox || sandbox.state === 'deleted') return notFound
    const endsAtMs = sessionEndsAtMs(
      {
        createdAtMs: session.created_at,
        attached: session.attached_at !== null,
        exitedAtMs: process?.exited_at ?? undefined,
      },
      { attachMs: limits.session_attach_seconds * 1000, journalMs: this.#journalMs },
    )
    if (endsAtMs !== undefined && nowMs >= endsAtMs) return unauthorized
    if (session.attached_at === null) await this.#store.write((db) => markAttached(db, session.id, nowMs))
    return { allowed: true, session, scopes: readScopes(token.scopes) }
  }
}
