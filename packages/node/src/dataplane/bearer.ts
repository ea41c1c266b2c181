import { PublicError } from '@space/contract'

/** No bearer of SPACE is longer. */
const maxTokenLength = 512

/** The bearer of a request; throws `unauthorized` when it brings none. */
export function bearerOf(authorization: string | undefined): string {
  const match = /^Bearer +([\x21-\x7e]+) *$/i.exec(authorization ?? '')
  const token = match?.[1]
  if (token === undefined || token.length > maxTokenLength) {
    throw new PublicError(
      'unauthorized',
      'The request brings no bearer token: send `Authorization: Bearer …`.',
    )
  }
  return token
}
