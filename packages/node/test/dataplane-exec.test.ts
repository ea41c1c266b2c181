import { Process_State } from '@space/contract/node-link'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually } from './fixture/eventually.ts'
import { newId, newSandbox, type TestNode, testNode } from './fixture/node.ts'

let node: TestNode
let sandbox = ''
beforeAll(async () => {
  node = await testNode()
  sandbox = await newSandbox(node)
})
afterAll(async () => {
  await node.close()
})

async function exec(body: object, headers: Record<string, string> = {}, id = sandbox) {
  const response = await fetch(`${node.url}/v1/sandboxes/${id}/exec`, {
    method: 'POST',
    headers: { authorization: 'Bearer account-token', 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  }
}

test('a command runs to its end in one call', async () => {
  const answer = await exec({ argv: ['sh', '-c', 'echo out; echo err >&2; exit 7'] })
  expect(answer.status).toBe(200)
  expect(answer.body).toMatchObject({
    exit_code: 7,
    signal: null,
    timed_out: false,
    reason: 'exited',
    errno: null,
    stdout: 'out\n',
    stderr: 'err\n',
    stdout_encoding: 'utf-8',
    stdout_truncated: false,
  })
})

test('input is given and ends; a program that does not read it is no failure', async () => {
  expect((await exec({ argv: ['cat'], input: 'héllo' })).body).toMatchObject({ stdout: 'héllo' })
  const binary = Buffer.from([0, 255, 10]).toString('base64')
  expect((await exec({ argv: ['cat'], input: binary, input_encoding: 'base64' })).body).toMatchObject({
    stdout: binary,
    stdout_encoding: 'base64',
  })
  expect((await exec({ argv: ['true'], input: 'x'.repeat(700_000) })).body).toMatchObject({ exit_code: 0 })
})

test('output above the limit is cut at a character and said to be', async () => {
  const answer = await exec({ argv: ['echo', 'aé'], output_limit_bytes: 2 })
  expect(answer.body).toMatchObject({
    stdout: 'a',
    stdout_truncated: true,
    stdout_encoding: 'utf-8',
    exit_code: 0,
  })
  const large = await exec({ argv: ['print', '3000000'] })
  expect(large.body).toMatchObject({ stdout_truncated: true, exit_code: 0 })
})

test('a missing program is an answer, a wrong request is not', async () => {
  expect((await exec({ argv: ['nope'] })).body).toMatchObject({
    reason: 'failed_to_start',
    errno: 'ENOENT',
    exit_code: null,
  })
  const unknown = await exec({ argv: ['true'], shell: true })
  expect([unknown.status, unknown.body]).toMatchObject([
    400,
    { code: 'invalid_request', details: { field: 'shell' } },
  ])
  expect((await exec({ argv: ['a\0b'] })).body).toMatchObject({
    code: 'invalid_request',
    details: { field: 'argv.0' },
  })
  expect((await exec({ argv: ['true'] }, { authorization: 'Bearer other' })).status).toBe(401)
  expect((await exec({ argv: ['true'] }, {}, newId('sandbox'))).status).toBe(404)
})

test('twenty requests at once with one Idempotency-Key run the command once', async () => {
  const key = { 'idempotency-key': 'once' }
  const answers = await Promise.all(Array.from({ length: 20 }, () => exec({ argv: ['generation'] }, key)))
  expect(new Set(answers.map(({ body }) => body['process_id'])).size).toBe(1)
  expect(answers.filter(({ headers }) => headers.get('idempotent-replayed') === 'true').length).toBe(19)
  expect(new Set(answers.map(({ body }) => body['stdout'])).size).toBe(1)
  expect((await exec({ argv: ['true'] }, key)).body).toMatchObject({ code: 'idempotency_conflict' })
})

test('a command whose caller is gone is killed', async () => {
  const abort = new AbortController()
  const call = fetch(`${node.url}/v1/sandboxes/${sandbox}/exec`, {
    method: 'POST',
    headers: { authorization: 'Bearer account-token', 'content-type': 'application/json' },
    body: JSON.stringify({ argv: ['sleep', '60'] }),
    signal: abort.signal,
  })
  const newest = async () => (await node.api.listProcesses({ sandboxId: sandbox, limit: 1 })).processes[0]
  await eventually(async () => (await newest())?.state).toBe(Process_State.RUNNING)
  abort.abort()
  await expect(call).rejects.toThrow()
  await eventually(async () => (await newest())?.signal).toBe(9)
})
