import { type Static, Type } from 'typebox'
import { limits } from '../limits.ts'
import { scopes } from '../scopes.ts'
import { nullableTime, oneOf, page, time } from './parts.ts'

const name = Type.String({
  minLength: 1,
  maxLength: limits.name_bytes,
  pattern: '^[^\\u0000-\\u001f\\u007f]+$',
})

export const Account = Type.Object(
  { id: Type.String(), name: Type.String(), created_at: time() },
  { $id: 'Account' },
)
export type Account = Static<typeof Account>

export const AccountPage = page(Account, 'AccountPage')
export type AccountPage = Static<typeof AccountPage>

export const CreateAccountRequest = Type.Object(
  { name },
  { $id: 'CreateAccountRequest', additionalProperties: false },
)
export type CreateAccountRequest = Static<typeof CreateAccountRequest>

const tokenFields = {
  id: Type.String(),
  account: Type.String({ description: 'The id of the account it belongs to.' }),
  name: Type.String(),
  scopes: Type.Array(oneOf(scopes)),
  expires_at: nullableTime(),
  last_used_at: nullableTime({ description: 'To the minute.' }),
  created_at: time(),
}

export const Token = Type.Object(tokenFields, { $id: 'Token' })
export type Token = Static<typeof Token>

export const CreatedToken = Type.Object(
  { ...tokenFields, value: Type.String({ description: 'The bearer value: shown here and never again.' }) },
  { $id: 'CreatedToken' },
)
export type CreatedToken = Static<typeof CreatedToken>

export const TokenPage = page(Token, 'TokenPage')
export type TokenPage = Static<typeof TokenPage>

export const CreateTokenRequest = Type.Object(
  {
    name,
    account: Type.Optional(Type.String({ description: "The caller's own by default." })),
    scopes: Type.Optional(
      Type.Array(oneOf(scopes), {
        minItems: 1,
        uniqueItems: true,
        description: 'Everything but `admin` by default.',
      }),
    ),
    expires_at: Type.Optional(nullableTime()),
  },
  { $id: 'CreateTokenRequest', additionalProperties: false },
)
export type CreateTokenRequest = Static<typeof CreateTokenRequest>
