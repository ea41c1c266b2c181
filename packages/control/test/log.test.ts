import { pino } from 'pino'
import { expect, test } from 'vitest'
import { startRig } from './rig.ts'

test('each unit of work is one line of log, and no token, environment or argument is in any', async () => {
  const lines: string[] = []
  const rig = await startRig({ log: pino({ level: 'trace' }, { write: (line) => lines.push(line) }) })
  const id = await rig.createRunning({ env: { PASSWORD: 'hush-env' }, metadata: { a: 'hush-metadata' } })
  await rig.call('POST', `/v1/sandboxes/${id}/commands`, { argv: ['hush-argument'], env: { A: 'hush-env' } })
  await rig.call('POST', '/v1/tokens', { name: 'a test' })
  await rig.call('GET', '/v1/sandboxes?metadata.a=hush-metadata')
  await rig.call('GET', '/v1/sandboxes', undefined, { authorization: 'Bearer spt_wrong' })
  await rig.call('GET', '/v1/hush-path')
  await rig.close()
  const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  const requests = entries.filter((entry) => 'request_id' in entry)
  expect(requests.map((entry) => `${entry['op']} ${entry['status']}`)).toEqual([
    'POST /v1/sandboxes 202',
    'POST /v1/sandboxes/:id/commands 201',
    'POST /v1/tokens 201',
    'GET /v1/sandboxes 200',
    'GET /v1/sandboxes 401',
    'GET unknown 404',
  ])
  expect(entries.filter((entry) => entry['op'] === 'node.create')).toMatchObject([
    { sandbox: id, outcome: 'observed' },
  ])
  expect(lines.join('')).not.toMatch(/spt_|hush/)
})
