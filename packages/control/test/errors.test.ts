import { once } from 'node:events'
import { connect } from 'node:net'
import { Code, ConnectError } from '@connectrpc/connect'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Rig, startRig } from './rig.ts'

let rig: Rig
beforeAll(async () => {
  rig = await startRig({ start: false })
})
afterAll(() => rig.close())

interface Case {
  readonly what: string
  readonly method?: string
  readonly path?: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
  readonly status: number
  readonly code?: string
  readonly field?: string
}

const template = 'base'
const big = 'x'.repeat(1_048_577)

test.each<Case>([
  { what: 'an unknown path', method: 'GET', path: '/v2/nothing', status: 404, code: 'not_found' },
  { what: 'a path with another method', method: 'PUT', status: 405 },
  { what: 'an unknown sandbox', method: 'GET', path: '/v1/sandboxes/sbx1', status: 404, code: 'not_found' },
  { what: 'an unknown operation', method: 'GET', path: '/v1/operations/op1', status: 404, code: 'not_found' },
  { what: 'broken JSON', body: '{"template":', status: 400 },
  { what: 'no body', status: 400 },
  { what: 'JSON that is no object', body: '[]', status: 400 },
  {
    what: 'a form',
    body: 'a=b',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    status: 415,
  },
  { what: 'more than 1 MiB', body: { template: big }, status: 413 },
  { what: 'a dangerous key', body: '{"template":"base","metadata":{"__proto__":{"a":1}}}', status: 400 },
  { what: 'a missing field', body: {}, status: 400, field: 'template' },
  { what: 'an unknown field', body: { template, templat: 1 }, status: 400, field: 'templat' },
  {
    what: 'an unknown field inside',
    body: { template, resources: { cpus: 1 } },
    status: 400,
    field: 'resources.cpus',
  },
  { what: 'a wrong type', body: { template: 5 }, status: 400, field: 'template' },
  {
    what: 'a number as text',
    body: { template, resources: { vcpus: '1' } },
    status: 400,
    field: 'resources.vcpus',
  },
  {
    what: 'too many vCPUs',
    body: { template, resources: { vcpus: 65 } },
    status: 400,
    field: 'resources.vcpus',
  },
  {
    what: 'metadata that is no text',
    body: { template, metadata: { a: 1 } },
    status: 400,
    field: 'metadata.a',
  },
  { what: 'a word off the list', body: { template, on_expire: 'explode' }, status: 400, field: 'on_expire' },
  { what: 'a time that is none', body: { template, expires_at: 'soon' }, status: 400, field: 'expires_at' },
  {
    what: 'an end in the past',
    body: { template, expires_at: '2020-01-01T00:00:00Z' },
    status: 400,
    field: 'expires_at',
  },
  {
    what: 'two ends',
    body: { template, expires_at: '2999-01-01T00:00:00Z', lifetime_seconds: 5 },
    status: 400,
    field: 'lifetime_seconds',
  },
  {
    what: 'a template that is not there',
    body: { template: 'nope:1' },
    status: 404,
    code: 'not_found',
    field: 'template',
  },
  {
    what: 'an empty idempotency key',
    body: { template },
    headers: { 'idempotency-key': 'ä' },
    status: 400,
    field: 'Idempotency-Key',
  },
  {
    what: 'a long idempotency key',
    body: { template },
    headers: { 'idempotency-key': 'k'.repeat(256) },
    status: 400,
    field: 'Idempotency-Key',
  },
  { what: 'a limit of 0', method: 'GET', path: '/v1/sandboxes?limit=0', status: 400, field: 'limit' },
  { what: 'a limit of 1001', method: 'GET', path: '/v1/sandboxes?limit=1001', status: 400, field: 'limit' },
  { what: 'a made-up cursor', method: 'GET', path: '/v1/sandboxes?cursor=x', status: 400, field: 'cursor' },
  { what: 'an unknown query', method: 'GET', path: '/v1/sandboxes?colour=red', status: 400, field: 'colour' },
  {
    what: 'an unknown state',
    method: 'GET',
    path: '/v1/sandboxes?state=asleep',
    status: 400,
    field: 'state',
  },
])('$what is answered with the envelope', async ({ method = 'POST', path = '/v1/sandboxes', ...given }) => {
  const answer = await rig.call(method, path, given.body, given.headers)
  expect(answer.status).toBe(given.status)
  expect(Object.keys(answer.body).sort()).toEqual(['code', 'details', 'message', 'request_id', 'retryable'])
  expect(answer.body['code']).toBe(given.code ?? 'invalid_request')
  expect(answer.body['request_id']).toBe(answer.headers.get('x-request-id'))
  expect(answer.body['retryable']).toBe(false)
  if (given.field !== undefined) {
    expect((answer.body['details'] as { field: string }).field).toBe(given.field)
    expect(answer.body['message']).toContain(given.field)
  }
})

test('a path with another method says which it takes', async () => {
  const answer = await rig.call('PUT', '/v1/sandboxes')
  expect(answer.headers.get('allow')).toBe('GET, HEAD, POST')
})

test('bytes that are not UTF-8 are refused, not replaced', async () => {
  const response = await fetch(`${rig.url}/v1/sandboxes`, {
    method: 'POST',
    headers: { authorization: `Bearer ${rig.token}`, 'content-type': 'application/json' },
    body: Buffer.concat([Buffer.from('{"template":"'), Buffer.from([0xff]), Buffer.from('"}')]),
  })
  expect(response.status).toBe(400)
  expect(((await response.json()) as { message: string }).message).toContain('UTF-8')
})

test('bytes that are no HTTP get the envelope too', async () => {
  const { port, hostname } = new URL(rig.url)
  const socket = connect(Number(port), hostname)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.write('NONSENSE\r\n\r\n')
  await once(socket, 'close')
  const [head = '', body = ''] = Buffer.concat(chunks).toString().split('\r\n\r\n')
  expect(head).toContain('400 Bad Request')
  expect(JSON.parse(body)).toMatchObject({ code: 'invalid_request', retryable: false })
})

test('a well-formed request id is kept, any other replaced', async () => {
  const kept = await rig.call('GET', '/healthz', undefined, { 'x-request-id': 'mine-1.2_3' })
  expect(kept.headers.get('x-request-id')).toBe('mine-1.2_3')
  const replaced = await rig.call('GET', '/healthz', undefined, { 'x-request-id': 'a b' })
  expect(replaced.headers.get('x-request-id')).toMatch(/^req[0-9a-f]{24}$/)
})

test('retryable comes with Retry-After; a silent node is retryable, a broken one internal without its words', async () => {
  const ill = await startRig({ start: false })
  ill.node.before = () => Promise.reject(new TypeError('/secret/path'))
  const broken = await ill.call('GET', '/v1/templates')
  expect([broken.status, broken.body['code'], broken.headers.get('retry-after')]).toEqual([
    500,
    'internal',
    null,
  ])
  expect(JSON.stringify(broken.body)).not.toContain('secret')
  ill.node.before = () => Promise.reject(new ConnectError('down', Code.Unavailable))
  const down = await ill.call('GET', '/v1/templates')
  expect([down.status, down.body['code'], down.body['retryable']]).toEqual([503, 'service_unavailable', true])
  expect(Number(down.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await ill.call('GET', '/readyz')).status).toBe(503)
  ill.node.before = () => Promise.resolve()
  expect((await ill.call('GET', '/readyz')).status).toBe(200)
  await ill.close()
})

test('the whole API is also served under /api/v1', async () => {
  const one = await rig.call('GET', '/v1/limits')
  const other = await rig.call('GET', '/api/v1/limits')
  expect(one.status).toBe(200)
  expect(other.body).toEqual(one.body)
})

test('no browser origin is answered by default, listed ones are', async () => {
  const origin = 'https://console.example'
  const closed = await rig.call('GET', '/healthz', undefined, { origin })
  expect(closed.headers.get('access-control-allow-origin')).toBeNull()
  const open = await startRig({ start: false, corsOrigins: [origin] })
  const asked = await open.call('OPTIONS', '/v1/sandboxes', undefined, {
    origin,
    'access-control-request-method': 'POST',
  })
  expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([204, origin])
  const stranger = await open.call('GET', '/healthz', undefined, { origin: 'https://evil.example' })
  expect(stranger.headers.get('access-control-allow-origin')).toBeNull()
  await open.close()
})
