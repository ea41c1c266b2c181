import { PublicErrorEnvelope, ref, Template, TemplatePage } from '@space/contract'
import { Type } from 'typebox'
import { templateAnswer } from '../answers/template.ts'
import type { Api, App } from '../api.ts'

const tags = ['templates']
const failure = { default: ref(PublicErrorEnvelope) }

/** The templates the node holds. */
export function templateRoutes(app: App, api: Api): void {
  app.get(
    '/v1/templates',
    {
      config: { scope: 'templates:read' },
      schema: { tags, summary: 'List templates', response: { 200: ref(TemplatePage), ...failure } },
    },
    async () => ({ items: (await api.templates.list()).map(templateAnswer), next_cursor: null }),
  )
  app.get(
    '/v1/templates/:name',
    {
      config: { scope: 'templates:read' },
      schema: {
        tags,
        summary: 'Get a template by name, name:tag or digest',
        params: Type.Object({ name: Type.String() }),
        response: { 200: ref(Template), ...failure },
      },
    },
    async (request) => templateAnswer(await api.templates.find(request.params.name)),
  )
}
