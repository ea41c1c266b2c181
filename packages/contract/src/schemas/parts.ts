/** The few forms every schema is made of. */
import { type Static, type TSchema, Type } from 'typebox'

export interface PartOptions {
  readonly description?: string
  readonly 'x-incubating'?: boolean
  readonly default?: unknown
}

/** One of a fixed list of words. */
export function oneOf<const T extends readonly string[]>(values: T, options: PartOptions = {}) {
  return Type.Unsafe<T[number]>({ type: 'string', enum: [...values], ...options })
}

/** A point in time: RFC 3339, UTC, milliseconds. */
export function time(options: PartOptions = {}) {
  return Type.Unsafe<string>({ type: 'string', format: 'date-time', ...options })
}

export function nullableTime(options: PartOptions = {}) {
  return Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time', ...options })
}

export function nullableString(options: PartOptions = {}) {
  return Type.Unsafe<string | null>({ type: ['string', 'null'], ...options })
}

export function nullableInteger(options: PartOptions = {}) {
  return Type.Unsafe<number | null>({ type: ['integer', 'null'], ...options })
}

/** A named schema of the document, referred to instead of repeated. */
export function ref<T extends TSchema>(schema: T) {
  return Type.Unsafe<Static<T>>({ $ref: `${nameOf(schema)}#` })
}

export function nullableRef<T extends TSchema>(schema: T) {
  return Type.Unsafe<Static<T> | null>({ anyOf: [{ $ref: `${nameOf(schema)}#` }, { type: 'null' }] })
}

/** A list answer: newest first, with the cursor of the next page or null at the end. */
export function page<T extends TSchema>(item: T, name: string) {
  return Type.Object(
    {
      items: Type.Array(ref(item)),
      next_cursor: nullableString({ description: 'Pass as `cursor` to get the next page; null at the end.' }),
    },
    { $id: name },
  )
}

/** String pairs; sizes are counted in bytes and checked by the named functions of `checks.ts`. */
export function stringMap(options: PartOptions = {}) {
  return Type.Unsafe<Record<string, string>>({
    type: 'object',
    additionalProperties: { type: 'string' },
    ...options,
  })
}

function nameOf(schema: TSchema): string {
  const name = (schema as { $id?: unknown }).$id
  if (typeof name !== 'string') throw new TypeError('only a schema with an $id can be referred to')
  return name
}
