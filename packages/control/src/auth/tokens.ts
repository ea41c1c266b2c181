import { isScope, PublicError, parseBearer, type Scope } from '@space/contract'
import type { Kysely } from 'kysely'
import type { Clock } from '../clock.ts'
import { getToken, insertToken } from '../store/accounts.ts'
import type { Database, TokenRow } from '../store/schema.ts'
import type { Store } from '../store/store.ts'
import { bearerValue, hashOf, sameText } from './bearer.ts'
import type { BearerKey } from './keys.ts'

/** Who calls, by an API token that is valid now. */
export interface Caller {
  readonly accountId: string
  readonly tokenId: string
  readonly scopes: readonly Scope[]
}

const lastUsedStepMs = 60_000

/** Looks tokens up on every request: a revoked or expired one fails on the very next. */
export class Tokens {
  readonly #store: Store
  readonly #key: BearerKey
  readonly #clock: Clock
  readonly #used = new Map<string, number>()

  constructor(store: Store, key: BearerKey, clock: Clock) {
    this.#store = store
    this.#key = key
    this.#clock = clock
  }

  /** The caller a bearer value stands for; `unauthorized` when it is missing, unknown, revoked or expired. */
  async authenticate(value: string | undefined): Promise<Caller> {
    if (value === undefined)
      throw new PublicError('unauthorized', 'No token: send `Authorization: Bearer <token>`.')
    const bearer = parseBearer(value)
    const row = bearer?.kind === 'api' ? await getToken(this.#store.read, bearer.id) : undefined
    const nowMs = this.#clock.nowMs()
    if (!row || !sameText(hashOf(value), row.hash) || !isValid(row, nowMs))
      throw new PublicError('unauthorized', 'The token is not valid: it is unknown, revoked or expired.')
    if (nowMs - (row.last_used_at ?? 0) >= lastUsedStepMs) this.#used.set(row.id, nowMs)
    return { accountId: row.account_id, tokenId: row.id, scopes: readScopes(row.scopes) }
  }

  /** Writes a token; its value is derived, and only its hash is stored. */
  async create(
    db: Kysely<Database>,
    token: {
      readonly id: string
      readonly accountId: string
      readonly name: string
      readonly scopes: readonly Scope[]
      readonly expiresAtMs: number | null
    },
  ): Promise<{ row: TokenRow; value: string }> {
    const value = this.valueOf(token.id)
    const row = await insertToken(db, {
      id: token.id,
      account_id: token.accountId,
      name: token.name,
      hash: hashOf(value),
      scopes: JSON.stringify(token.scopes),
      expires_at: token.expiresAtMs,
      revoked_at: null,
      last_used_at: null,
      created_at: this.#clock.nowMs(),
    })
    return { row, value }
  }

  /** The bearer value of a token, for the answer that makes it and its replays. */
  valueOf(id: string): string {
    return bearerValue(this.#key, 'api', id)
  }

  /** Writes when tokens were last used; called now and then, so that using one costs no write. */
  async writeLastUsed(): Promise<void> {
    if (this.#used.size === 0) return
    const used = [...this.#used]
    this.#used.clear()
    await this.#store.write(async (db) => {
      for (const [id, atMs] of used)
        await db.updateTable('tokens').set({ last_used_at: atMs }).where('id', '=', id).execute()
    })
  }
}

/** Whether a token is neither revoked nor expired. */
export function isValid(row: Pick<TokenRow, 'revoked_at' | 'expires_at'>, nowMs: number): boolean {
  return row.revoked_at === null && (row.expires_at === null || row.expires_at > nowMs)
}

/** The scopes of a stored token; what this version does not know grants nothing. */
export function readScopes(scopes: string): Scope[] {
  return (JSON.parse(scopes) as string[]).filter(isScope)
}

/** Throws `forbidden`, naming the scope that is missing. */
export function requireScope(caller: Caller, scope: Scope): void {
  if (!caller.scopes.includes(scope))
    throw new PublicError('forbidden', `The token lacks the scope ${scope}: use one that has it.`, {
      details: { scope },
    })
}
