import { type Static, Type } from 'typebox'
import { errorCodes } from '../errors.ts'
import { oneOf } from './parts.ts'

const body = {
  code: oneOf(errorCodes),
  message: Type.String({
    description: 'What was wrong, with the field and the limit, and what to do about it.',
  }),
  details: Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true }),
  retryable: Type.Boolean({ description: 'Always comes with a Retry-After header when true.' }),
}

/** The answer of every failed request. */
export const PublicErrorEnvelope = Type.Object(
  {
    ...body,
    request_id: Type.String({ description: 'Finds this request in the log; also in X-Request-Id.' }),
  },
  { $id: 'PublicErrorEnvelope' },
)
export type PublicErrorEnvelope = Static<typeof PublicErrorEnvelope>

/** Why an operation failed, or what last happened to a sandbox. */
export const RecordedError = Type.Object(body, { $id: 'RecordedError' })
export type RecordedError = Static<typeof RecordedError>
