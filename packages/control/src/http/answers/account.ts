import type { Account, Token } from '@space/contract'
import { readScopes } from '../../auth/tokens.ts'
import { toNullableTime, toTime } from '../../clock.ts'
import type { AccountRow, TokenRow } from '../../store/schema.ts'

/** An account as it is answered. */
export function accountAnswer(row: AccountRow): Account {
  return { id: row.id, name: row.name, created_at: toTime(row.created_at) }
}

/** A token as it is answered, without its value. */
export function tokenAnswer(row: TokenRow): Token {
  return {
    id: row.id,
    account: row.account_id,
    name: row.name,
    scopes: readScopes(row.scopes),
    expires_at: toNullableTime(row.expires_at),
    last_used_at: toNullableTime(row.last_used_at),
    created_at: toTime(row.created_at),
  }
}
