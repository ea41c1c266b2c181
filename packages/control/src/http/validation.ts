import { PublicError } from '@space/contract'
import type { FastifySchemaValidationError } from 'fastify'

const places: Readonly<Record<string, string>> = {
  body: 'the body',
  querystring: 'the query',
  params: 'the path',
}

/** What the schema refused, as a sentence that names the field, says what is wanted and what to do. */
export function validationError(
  errors: readonly FastifySchemaValidationError[],
  dataVar: string,
): PublicError {
  const place = places[dataVar] ?? dataVar
  const union = errors.find((error) => error.keyword === 'anyOf')
  const error = union ?? errors[0]
  if (!error) return new PublicError('invalid_request', `${place} is not as the schema wants it.`)
  const path = error.instancePath.slice(1).replaceAll('/', '.')
  const under = (name: unknown) => shown(path === '' ? String(name) : `${path}.${String(name)}`)
  const field = path === '' ? place : shown(path)
  switch (error.keyword) {
    case 'additionalProperties': {
      const unknown = under(error.params['additionalProperty'])
      return refuse(unknown, `${unknown} is not a field of ${place}: remove it or correct its name.`)
    }
    case 'required': {
      const missing = under(error.params['missingProperty'])
      return refuse(missing, `${missing} is missing from ${place}: it is required.`)
    }
    case 'enum':
      return refuse(field, `${field} must be one of: ${listed(error.params['allowedValues'])}.`)
    case 'anyOf':
      return refuse(field, `${field} has a type or value that is not taken here: see the document.`)
    case 'pattern':
      return refuse(field, `${field} contains characters that are not taken here: see the document.`)
    case 'format':
      return refuse(field, `${field} must be a time like 2026-01-31T12:00:00.000Z.`)
    default:
      return refuse(
        field,
        `${field} ${error.message ?? 'is not as the schema wants it'}.`,
        error.params['limit'],
      )
  }
}

function refuse(field: string, message: string, limit?: unknown): PublicError {
  return new PublicError('invalid_request', message, {
    details: { field, ...(typeof limit === 'number' ? { limit } : {}) },
  })
}

function listed(values: unknown): string {
  return Array.isArray(values) ? values.map(String).join(', ') : ''
}

/** A field name as it may be repeated: short, printable. */
function shown(field: string): string {
  const printable = field.replaceAll(/[^\x20-\x7e]/g, '?')
  return printable.length > 80 ? `${printable.slice(0, 80)}…` : printable
}
