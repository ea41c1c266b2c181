/** What the data plane serves, for the document: the API itself never carries a sandbox's bytes. */
import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger'

type Paths = NonNullable<NonNullable<FastifyDynamicSwaggerOptions['openapi']>['paths']>

const schema = (name: string) => ({ $ref: `#/components/schemas/${name}` })
const json = (name: string) => ({ 'application/json': { schema: schema(name) } })
const failure = { description: 'An error.', content: json('PublicErrorEnvelope') }
const sessionId = { name: 'id', in: 'path' as const, required: true, schema: { type: 'string' as const } }
const bySession = [{ session: [] }]

/** OpenAPI path items with the data plane's address. */
export function dataPlanePaths(dataPlaneUrl: string): Paths {
  const servers = [{ url: dataPlaneUrl }]
  return {
    '/v1/sessions/{id}/events': {
      servers,
      get: {
        summary: 'Attach: starts the process and streams its output',
        description:
          'Resumes at the exact byte with Last-Event-ID or from_offset. 204 once the exit was delivered.',
        tags: ['data plane'],
        security: bySession,
        parameters: [
          sessionId,
          { name: 'from_offset', in: 'query', schema: { type: 'integer', minimum: 0 } },
          { name: 'Last-Event-ID', in: 'header', schema: { type: 'string' } },
        ],
        responses: {
          '200': {
            description: 'Events until process_exited.',
            content: { 'text/event-stream': { schema: { type: 'string' } } },
          },
          '204': { description: 'The stream of this id has ended.' },
          default: failure,
        },
      },
    },
    '/v1/sessions/{id}/stdin': {
      servers,
      post: {
        summary: 'Write to stdin',
        tags: ['data plane'],
        security: bySession,
        parameters: [
          sessionId,
          { name: 'Stdin-Offset', in: 'header', schema: { type: 'integer', minimum: 0 } },
        ],
        requestBody: {
          required: true,
          content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } },
        },
        responses: { '200': { description: 'Taken.', content: json('StdinAnswer') }, default: failure },
      },
    },
    '/v1/sessions/{id}/stdin/close': {
      servers,
      post: {
        summary: 'Close stdin',
        tags: ['data plane'],
        security: bySession,
        parameters: [sessionId],
        responses: { '204': { description: 'Closed.' }, default: failure },
      },
    },
    '/v1/sessions/{id}/resize': {
      servers,
      post: {
        summary: 'Resize the terminal',
        tags: ['data plane'],
        security: bySession,
        parameters: [sessionId],
        requestBody: { required: true, content: json('PtySize') },
        responses: { '204': { description: 'Resized.' }, default: failure },
      },
    },
    '/v1/sandboxes/{id}/exec': {
      servers,
      post: {
        summary: 'Run a command to its end',
        tags: ['data plane'],
        security: [{ bearer: ['commands:run'] }],
        parameters: [sessionId],
        requestBody: { required: true, content: json('ExecRequest') },
        responses: { '200': { description: 'It ended.', content: json('ExecAnswer') }, default: failure },
      },
    },
  }
}
