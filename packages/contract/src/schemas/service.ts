/** What the service says about itself. */
import { type Static, Type } from 'typebox'
import { type LimitName, limits } from '../limits.ts'
import { nullableString } from './parts.ts'

export const Limits = Type.Object(
  Object.fromEntries(Object.keys(limits).map((name) => [name, Type.Integer()])) as Record<
    LimitName,
    ReturnType<typeof Type.Integer>
  >,
  { $id: 'Limits', description: 'Every limit by name, with its unit in the name.' },
)

export const Version = Type.Object(
  {
    version: Type.String(),
    api: Type.String({ description: 'The version of this contract.' }),
    data_plane_url: Type.String(),
  },
  { $id: 'Version' },
)
export type Version = Static<typeof Version>

export const Health = Type.Object(
  { status: Type.String(), reason: nullableString() },
  { $id: 'Health', description: '`ok`, or `unavailable` with the reason.' },
)
export type Health = Static<typeof Health>
