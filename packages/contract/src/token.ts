/**
 * SPACE's own bearer values have a fixed prefix, so that an edge can strip them from what an application in a sandbox
 * receives and a scanner can find a leaked one:
 *
 *   spt_a <25 characters: tail of the token id>   <43 characters: secret>     an API token
 *   spt_s <25 characters: tail of the session id> <43 characters: secret>     a session token
 */
import { idPrefixes } from './ids.ts'

export const tokenPrefix = 'spt_'

export type BearerKind = 'api' | 'session'

export interface Bearer {
  readonly kind: BearerKind
  /** The id of the token or session this value claims to belong to. */
  readonly id: string
  /** The 43 base64url characters that prove it. */
  readonly secret: string
}

const form = /^spt_([as])([0-9a-z]{25})([0-9A-Za-z_-]{43})$/

/** Puts a bearer value together; the inverse of parseBearer. */
export function formBearer(bearer: Bearer): string {
  const letter = bearer.kind === 'api' ? 'a' : 's'
  return `${tokenPrefix}${letter}${bearer.id.slice(3)}${bearer.secret}`
}

/** Takes a bearer value apart; undefined when it was never one of ours. */
export function parseBearer(value: string): Bearer | undefined {
  const match = form.exec(value)
  const [, letter, tail, secret] = match ?? []
  if (letter === undefined || tail === undefined || secret === undefined) return undefined
  return letter === 'a'
    ? { kind: 'api', id: idPrefixes.token + tail, secret }
    : { kind: 'session', id: idPrefixes.session + tail, secret }
}
