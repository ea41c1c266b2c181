import { limits } from '@space/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Rig, startRig } from './rig.ts'

interface Document {
  readonly openapi: string
  readonly paths: Record<string, Record<string, { operationId?: string; responses: Record<string, unknown> }>>
  readonly components: { readonly schemas: Record<string, object> }
}

let rig: Rig
let document: Document
beforeAll(async () => {
  rig = await startRig({ start: false })
  document = (await rig.call<Document>('GET', '/openapi-m1.json', undefined, { authorization: '' })).body
})
afterAll(() => rig.close())

test('the document is OpenAPI 3.1, open to everyone, and holds every endpoint of the contract', () => {
  expect(document.openapi).toBe('3.1.0')
  const endpoints = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(item)
      .filter((key) => key !== 'servers')
      .map((method) => `${method.toUpperCase()} ${path}`),
  )
  expect(endpoints).toEqual(
    expect.arrayContaining([
      'POST /v1/sandboxes',
      'GET /v1/sandboxes',
      'GET /v1/sandboxes/{id}',
      'PATCH /v1/sandboxes/{id}',
      'DELETE /v1/sandboxes/{id}',
      'GET /v1/operations/{id}',
      'GET /v1/operations',
      'POST /v1/sandboxes/{id}/commands',
      'GET /v1/sandboxes/{id}/processes',
      'GET /v1/sandboxes/{id}/processes/{process}',
      'POST /v1/sandboxes/{id}/processes/{process}/kill',
      'POST /v1/sandboxes/{id}/processes/{process}/signal',
      'POST /v1/sandboxes/{id}/processes/{process}/sessions',
      'GET /v1/sessions/{id}/events',
      'POST /v1/sandboxes/{id}/exec',
      'GET /v1/templates',
      'GET /v1/limits',
      'GET /v1/version',
    ]),
  )
})

test('every reference of the document leads to a named schema of it', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(
    (match) => match[1] ?? '',
  )
  expect(references.length).toBeGreaterThan(50)
  for (const reference of new Set(references)) {
    expect(reference).toMatch(/^#\/components\/schemas\//)
    expect(document.components.schemas).toHaveProperty(reference.slice('#/components/schemas/'.length))
  }
  expect(document.components.schemas).toHaveProperty('PublicErrorEnvelope')
})

test('every endpoint that is not open describes how it fails', () => {
  for (const [path, item] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(item)) {
      if (method === 'servers' || ['/healthz', '/readyz', '/v1/limits', '/v1/version'].includes(path))
        continue
      expect([path, method, Object.keys(operation.responses)]).toEqual([
        path,
        method,
        expect.arrayContaining(['default']),
      ])
    }
})

test('all limits are published', async () => {
  expect((await rig.call('GET', '/v1/limits')).body).toEqual(limits)
})
