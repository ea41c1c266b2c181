import { expect, test } from 'vitest'
import { SpaceClient } from '../src/index.ts'
import { apiServer, reply } from './api-server.ts'

const client = (apiUrl: string) => new SpaceClient({ apiUrl, token: 'spt_test' })

function envelope(code: string, retryable = false) {
  return { code, message: `${code} it is`, request_id: 'req-9', details: { field: 'template' }, retryable }
}

test('an error answer arrives as a typed error with everything the envelope says', async () => {
  await using server = await apiServer((_request, _count, response) =>
    reply(response, 400, envelope('invalid_request')),
  )
  await expect(client(server.url).sandboxes.create({ template: '' })).rejects.toMatchObject({
    name: 'SpaceError',
    code: 'invalid_request',
    status: 400,
    message: 'invalid_request it is',
    requestId: 'req-9',
    details: { field: 'template' },
    retryable: false,
  })
  expect(server.seen).toHaveLength(1)
})

test('an answer that is no envelope still has a code, and the request id of its header', async () => {
  await using server = await apiServer((_request, _count, response) => {
    response
      .writeHead(404, { 'content-type': 'text/html', 'x-request-id': 'from-header' })
      .end('<h1>nothing</h1>')
  })
  const failure = client(server.url).sandboxes.get('sbx1')
  await expect(failure).rejects.toMatchObject({ code: 'not_found', status: 404, requestId: 'from-header' })
})

test('a mutation that may be tried again is sent with the same idempotency key, after the wait asked for', async () => {
  await using server = await apiServer((_request, count, response) => {
    if (count < 3) reply(response, 503, envelope('service_unavailable', true), { 'retry-after': '0.05' })
    else reply(response, 202, { sandbox: { id: 'sbx1' }, operation: { id: 'op1' } })
  })
  const startedMs = performance.now()
  const { sandbox } = await client(server.url).sandboxes.create({ template: 'base' })
  expect(sandbox.id).toBe('sbx1')
  expect(performance.now() - startedMs).toBeGreaterThan(90)
  const keys = server.seen.map(({ headers }) => headers['idempotency-key'])
  expect(keys).toHaveLength(3)
  expect(new Set(keys).size).toBe(1)
  expect(keys[0]).toMatch(/^[0-9a-f]{32}$/)
  expect(server.seen[0]?.headers.authorization).toBe('Bearer spt_test')
})

test('an answer lost on the way is asked for again; what stays unreachable is an error that says where', async () => {
  await using server = await apiServer((_request, count, response) => {
    if (count === 1) response.destroy()
    else reply(response, 200, { id: 'sbx1' })
  })
  expect(await client(server.url).sandboxes.get('sbx1')).toEqual({ id: 'sbx1' })
  const nobody = new SpaceClient({ apiUrl: 'http://127.0.0.1:9', token: 't', maxAttempts: 2 })
  await expect(nobody.version()).rejects.toMatchObject({
    code: 'connection_failed',
    status: 0,
    retryable: true,
  })
  await expect(nobody.version()).rejects.toThrow('http://127.0.0.1:9 cannot be reached')
})

test('a final error is not tried again', async () => {
  await using server = await apiServer((_request, _count, response) =>
    reply(response, 500, envelope('internal')),
  )
  await expect(client(server.url).version()).rejects.toMatchObject({ code: 'internal' })
  expect(server.seen).toHaveLength(1)
})

test('an abort ends a call and the wait between two attempts, with the reason given', async () => {
  await using server = await apiServer((_request, count, response) => {
    if (count === 1) reply(response, 503, envelope('service_unavailable', true), { 'retry-after': '20' })
  })
  const reason = new Error('enough')
  const signal = () => {
    const abort = new AbortController()
    setTimeout(() => abort.abort(reason), 50)
    return abort.signal
  }
  await expect(client(server.url).version({ signal: signal() })).rejects.toBe(reason)
  await expect(client(server.url).version({ signal: signal() })).rejects.toBe(reason)
  expect(server.seen).toHaveLength(2)
})

test('waiting for an operation ends with it, and throws what made it fail', async () => {
  const failed = {
    id: 'op1',
    kind: 'create',
    state: 'failed',
    error: { ...envelope('capacity_unavailable', true) },
  }
  await using server = await apiServer((_request, count, response) => {
    reply(response, 200, count < 3 ? { id: 'op1', kind: 'create', state: 'running' } : failed)
  })
  const space = client(server.url)
  const operation = await space.operations.get('op1')
  await expect(space.operations.wait(operation)).rejects.toMatchObject({
    code: 'capacity_unavailable',
    details: { operation_id: 'op1' },
  })
})

test('all walks every page and passes the filters on, encoded', async () => {
  await using server = await apiServer(({ url }, _count, response) => {
    const second = url.includes('cursor=')
    reply(response, 200, { items: [{ id: second ? 'b' : 'a' }], next_cursor: second ? null : 'c/1' })
  })
  const ids: string[] = []
  const query = { metadata: { 'task&x': 'ä' }, limit: 1 }
  for await (const { id } of client(server.url).sandboxes.all(query)) ids.push(id)
  expect(ids).toEqual(['a', 'b'])
  expect(server.seen.map(({ url }) => url)).toEqual([
    '/v1/sandboxes?limit=1&metadata.task%26x=%C3%A4',
    '/v1/sandboxes?limit=1&cursor=c%2F1&metadata.task%26x=%C3%A4',
  ])
})

test('stdin names the offset of each chunk, and sends one again after a lost answer under the same offset', async () => {
  await using server = await apiServer((_request, count, response) => {
    if (count === 2) response.destroy()
    else reply(response, 200, {})
  })
  const session = {
    id: 's',
    events_url: `${server.url}/v1/sessions/s/events`,
    token: 'spt_session',
    expires_at: '',
  }
  const process = { id: 'p' } as Parameters<SpaceClient['commands']['attach']>[0]
  const { stdin } = client(server.url).commands.attach(process, session)
  await stdin.write(new Uint8Array(262_144 + 10).fill(97))
  await stdin.write(new TextEncoder().encode('end'))
  await stdin.close()
  const seen = server.seen.map(({ url, headers, body }) => [
    url.split('/').slice(4).join('/'),
    headers['stdin-offset'],
    body.length,
  ])
  expect(seen).toEqual([
    ['stdin', '0', 262_144],
    ['stdin', '262144', 10],
    ['stdin', '262144', 10],
    ['stdin', '262154', 3],
    ['stdin/close', undefined, 0],
  ])
  expect(server.seen[0]?.headers.authorization).toBe('Bearer spt_session')
})

test('exec asks a sandbox where its data plane is, once', async () => {
  await using server = await apiServer(({ url, headers }, _count, response) => {
    const sandbox = { id: 'sbx1', urls: { data_plane: `http://${headers.host}/plane` } }
    reply(response, 200, url.endsWith('/exec') ? { exit_code: 0 } : sandbox)
  })
  const space = client(server.url)
  await space.commands.exec('sbx1', { argv: ['true'] })
  await space.commands.exec('sbx1', { argv: ['true'] })
  expect(server.seen.map(({ url }) => url)).toEqual([
    '/v1/sandboxes/sbx1',
    '/plane/v1/sandboxes/sbx1/exec',
    '/plane/v1/sandboxes/sbx1/exec',
  ])
})
