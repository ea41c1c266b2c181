import { limits, PublicError } from '@space/contract'
import { Type } from 'typebox'

/** The query of every list. */
export const pageQuery = {
  limit: Type.Optional(
    Type.Unsafe<string>({
      type: 'string',
      pattern: '^[0-9]{1,9}$',
      description: `1 to ${limits.list_max}; ${limits.list_default} by default.`,
    }),
  ),
  cursor: Type.Optional(Type.String({ description: '`next_cursor` of the page before.' })),
}

export interface PageRequest {
  readonly limit: number
  readonly beforeSeq: number | undefined
}

/** One row more than the page holds tells whether another page follows. */
export function rowsFor(page: PageRequest): { limit: number; beforeSeq: number | undefined } {
  return { limit: page.limit + 1, beforeSeq: page.beforeSeq }
}

/** Reads limit and cursor of a list; throws `invalid_request` for one this API did not give. */
export function readPage(query: { limit?: string; cursor?: string }): PageRequest {
  return { limit: readLimit(query.limit), beforeSeq: readCursor(query.cursor) }
}

/** The number of items wanted. */
export function readLimit(text: string | undefined): number {
  const limit = text === undefined ? limits.list_default : Number(text)
  if (limit >= 1 && limit <= limits.list_max) return limit
  throw new PublicError('invalid_request', `limit must lie between 1 and ${limits.list_max}.`, {
    details: { field: 'limit', limit: limits.list_max },
  })
}

/** A page as it is answered, from rows newest first, one more than the page holds if there are more. */
export function toPage<R extends { readonly seq: number }, T>(
  rows: readonly R[],
  page: PageRequest,
  render: (row: R) => T,
): { items: T[]; next_cursor: string | null } {
  const shown = rows.slice(0, page.limit)
  const last = rows.length > page.limit ? shown.at(-1) : undefined
  return { items: shown.map(render), next_cursor: last ? `s${last.seq.toString(36)}` : null }
}

/** The position a cursor stands for: rows older than it come next. */
export function readCursor(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined
  const seq = /^s([0-9a-z]{1,11})$/.exec(cursor)?.[1]
  if (seq !== undefined) return Number.parseInt(seq, 36)
  throw new PublicError('invalid_request', 'cursor is not one this list gave: leave it out to begin again.', {
    details: { field: 'cursor' },
  })
}

/** A query value that may be given once, several times, or as a comma-separated list. */
export function readList<T extends string>(
  field: string,
  given: string | readonly string[] | undefined,
  allowed: readonly T[],
): T[] | undefined {
  if (given === undefined) return undefined
  const words = [given].flat().flatMap((text) => text.split(','))
  return words.map((word) => {
    const found = allowed.find((candidate) => candidate === word)
    if (found) return found
    throw new PublicError('invalid_request', `${field} must be one of: ${allowed.join(', ')}.`, {
      details: { field },
    })
  })
}
