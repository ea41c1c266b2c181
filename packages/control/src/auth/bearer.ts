import { createHash, timingSafeEqual } from 'node:crypto'
import { formBearer } from '@space/contract'
import type { BearerKey } from './keys.ts'

/** The bearer value of an API token or a session. */
export function bearerValue(key: BearerKey, kind: 'api' | 'session', id: string): string {
  return formBearer({ kind, id, secret: key.secretOf(kind, id) })
}

/** What is stored of a bearer value. */
export function hashOf(value: string): string {
  return createHash('sha256').update(value).digest('hex')
}

/** Compares without telling by its duration where two texts differ. */
export function sameText(left: string, right: string): boolean {
  const [a, b] = [Buffer.from(left), Buffer.from(right)]
  return a.length === b.length && timingSafeEqual(a, b)
}
