/** Who may call what: over every endpoint of the document, so that a new one cannot be forgotten. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Rig, startRig } from './rig.ts'

let rig: Rig
let otherToken: string
let sandboxId: string
let processId: string

interface Endpoint {
  readonly method: string
  readonly path: string
  readonly scope: string | undefined
}

/** Bodies that pass the schema, so that a refusal is about who calls and not about what. */
const bodies: Readonly<Record<string, unknown>> = {
  'POST /v1/sandboxes': { template: 'base' },
  'PATCH /v1/sandboxes/{id}': { metadata: { a: 'b' } },
  'POST /v1/sandboxes/{id}/commands': { argv: ['true'] },
  'POST /v1/sandboxes/{id}/processes/{process}/signal': { signal: 15 },
  'POST /v1/tokens': { name: 'other' },
  'POST /v1/accounts': { name: 'third' },
}

beforeAll(async () => {
  rig = await startRig()
  sandboxId = await rig.createRunning()
  const made = await rig.call<{ process: { id: string } }>('POST', `/v1/sandboxes/${sandboxId}/commands`, {
    argv: ['true'],
  })
  processId = made.body.process.id
  const account = await rig.call<{ id: string }>('POST', '/v1/accounts', { name: 'other' })
  otherToken = (await tokenWith({ account: account.body.id })).value
})
afterAll(() => rig.close())

async function tokenWith(fields: Record<string, unknown>): Promise<{ id: string; value: string }> {
  const made = await rig.call<{ id: string; value: string }>('POST', '/v1/tokens', {
    name: 'a test',
    ...fields,
  })
  expect(made.status).toBe(201)
  return made.body
}

async function endpoints(): Promise<Endpoint[]> {
  type Item = Record<string, { security?: { bearer?: string[] }[] }>
  const { body } = await rig.call<{ paths: Record<string, Item> }>('GET', '/openapi-m1.json')
  return Object.entries(body.paths)
    .filter(([, item]) => !('servers' in item))
    .flatMap(([path, item]) =>
      Object.entries(item).map(([method, { security }]) => ({
        method: method.toUpperCase(),
        path,
        scope: security?.[0]?.bearer?.[0],
      })),
    )
}

async function callAs(token: string | undefined, { method, path }: Endpoint) {
  const target = path
    .replace('{id}', path.includes('/tokens/') ? 'tok0' : sandboxId)
    .replace('{process}', processId)
    .replace('{name}', 'base')
  const response = await fetch(rig.url + target, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(bodies[`${method} ${path}`] ? { 'content-type': 'application/json' } : {}),
    },
    ...(bodies[`${method} ${path}`] ? { body: JSON.stringify(bodies[`${method} ${path}`]) } : {}),
  })
  return { status: response.status, body: (await response.json()) as { code?: string } }
}

test('the document names a scope for everything but health, limits and version', async () => {
  const open = (await endpoints()).filter((one) => one.scope === undefined).map((one) => one.path)
  expect(open.sort()).toEqual(['/healthz', '/readyz', '/v1/limits', '/v1/version'])
})

test('every other endpoint refuses a missing, a wrong, a revoked and an expired token', async () => {
  const revoked = await tokenWith({ scopes: ['admin', 'sandboxes:read'] })
  expect((await rig.call('DELETE', `/v1/tokens/${revoked.id}`)).status).toBe(200)
  const wrong = `${rig.token.slice(0, -1)}${rig.token.endsWith('A') ? 'B' : 'A'}`
  const expired = await tokenWith({ expires_at: new Date(Date.now() + 30).toISOString() })
  await new Promise((resolve) => setTimeout(resolve, 60))
  const closed = (await endpoints()).filter((one) => one.scope !== undefined)
  expect(closed.length).toBeGreaterThan(15)
  for (const endpoint of closed)
    for (const token of [undefined, '', 'spt_x', wrong, revoked.value, expired.value]) {
      const answer = await callAs(token, endpoint)
      expect([endpoint, token, answer.status, answer.body.code]).toEqual([
        endpoint,
        token,
        401,
        'unauthorized',
      ])
    }
})

test('every endpoint refuses a token that lacks its scope', async () => {
  const all = await endpoints()
  const scopes = [...new Set(all.flatMap((one) => (one.scope === undefined ? [] : [one.scope])))]
  for (const scope of scopes) {
    const token = (await tokenWith({ scopes: scopes.filter((one) => one !== scope) })).value
    for (const endpoint of all.filter((one) => one.scope === scope)) {
      const answer = await callAs(token, endpoint)
      expect([endpoint, answer.status, answer.body.code]).toEqual([endpoint, 403, 'forbidden'])
    }
  }
})

test("E3: another account's sandbox and processes do not exist, and it is not in its lists", async () => {
  const before = rig.node.calls.length
  const ofSandbox = (await endpoints()).filter((one) => one.path.startsWith('/v1/sandboxes/{id}'))
  expect(ofSandbox.length).toBeGreaterThan(6)
  for (const endpoint of ofSandbox) {
    const answer = await callAs(otherToken, endpoint)
    expect([endpoint, answer.status, answer.body.code]).toEqual([endpoint, 404, 'not_found'])
  }
  expect(rig.node.calls.slice(before)).toEqual([])
  const list = await rig.call<{ items: unknown[] }>('GET', '/v1/sandboxes', undefined, {
    authorization: `Bearer ${otherToken}`,
  })
  expect(list.body.items).toEqual([])
})

test('a revoked token fails on the very next call', async () => {
  const { id, value } = await tokenWith({ scopes: ['sandboxes:read'] })
  const list = () => rig.call('GET', '/v1/sandboxes', undefined, { authorization: `Bearer ${value}` })
  expect((await list()).status).toBe(200)
  await rig.call('DELETE', `/v1/tokens/${id}`)
  expect((await list()).status).toBe(401)
})

test('a token value is shown once, in the answer that creates it, and is not in the store', async () => {
  const { value } = await tokenWith({})
  const list = await rig.call('GET', '/v1/tokens')
  expect(JSON.stringify(list.body)).not.toContain('spt_')
  const { readFileSync, readdirSync } = await import('node:fs')
  for (const file of readdirSync(rig.folder))
    expect(readFileSync(`${rig.folder}/${file}`).includes(value)).toBe(false)
})

test('a token has every scope but admin unless told otherwise', async () => {
  const made = await rig.call<{ scopes: string[] }>('POST', '/v1/tokens', { name: 'plain' })
  expect(made.body.scopes).toContain('sandboxes:write')
  expect(made.body.scopes).not.toContain('admin')
})

test('the first account and token are the same at every start, and a revoked one is replaced', async () => {
  const again = await rig.control.bootstrap()
  expect(again).toEqual({ account: rig.account, token: rig.token })
  const tokens = await rig.call<{ items: { id: string; name: string }[] }>('GET', '/v1/tokens?limit=1000')
  const first = tokens.body.items.find((one) => one.name === 'space up')
  const helper = (await tokenWith({ scopes: ['admin'] })).value
  await rig.call('DELETE', `/v1/tokens/${first?.id}`, undefined, { authorization: `Bearer ${helper}` })
  const replaced = await rig.control.bootstrap()
  expect(replaced.account).toEqual(rig.account)
  expect(replaced.token).not.toBe(rig.token)
})
