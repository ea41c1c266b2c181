/** The OpenAPI 3.1 document, made of the same schemas that validate; the data plane's endpoints are described with it. */
import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger'
import type { Api, App } from './api.ts'
import { dataPlanePaths } from './data-plane-paths.ts'

/** How the document is put together from the routes. */
export function documentOptions(api: Pick<Api, 'apiUrl' | 'dataPlaneUrl'>): FastifyDynamicSwaggerOptions {
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'SPACE',
        version: '0.1.0',
        description: 'Sandboxed platform for agentic code execution: Linux microVMs over HTTP.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: api.apiUrl }],
      components: {
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            description: 'An API token; each endpoint names its scope.',
          },
          session: { type: 'http', scheme: 'bearer', description: 'The token of one command session.' },
        },
      },
      paths: dataPlanePaths(api.dataPlaneUrl),
    },
    refResolver: { buildLocalReference: (json) => String(json['$id']) },
    transform: ({ schema, url, route }) => {
      const { scope } = route.config ?? {}
      const security = scope === undefined ? [] : [{ bearer: [scope] }]
      return { schema: { ...schema, security }, url }
    },
  }
}

/** Serves the document to everyone; it holds nothing that is not public. */
export function serveDocument(app: App): void {
  let text: string | undefined
  app.get('/openapi-m1.json', { config: { open: true }, schema: { hide: true } }, async (_request, reply) => {
    text ??= JSON.stringify(app.swagger())
    return reply.header('content-type', 'application/json; charset=utf-8').send(text)
  })
}
