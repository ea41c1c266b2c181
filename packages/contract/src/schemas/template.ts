import { type Static, Type } from 'typebox'
import { page, ref, time } from './parts.ts'
import { Resources } from './sandbox.ts'

export const Template = Type.Object(
  {
    name: Type.String(),
    tags: Type.Array(Type.String()),
    digest: Type.String(),
    size_bytes: Type.Integer({ description: 'Used, not apparent.' }),
    resources: ref(Resources),
    created_at: time(),
    builds: Type.Array(Type.String(), { 'x-incubating': true }),
  },
  {
    $id: 'Template',
    description: 'Starting filesystem plus runtime configuration; never changed by its sandboxes.',
  },
)
export type Template = Static<typeof Template>

export const TemplatePage = page(Template, 'TemplatePage')
export type TemplatePage = Static<typeof TemplatePage>
