import type { OperationPage, SandboxPage } from '@space/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { baseDigest } from './fake-node.ts'
import { type Rig, startRig } from './rig.ts'

let rig: Rig
const ids: string[] = []

beforeAll(async () => {
  rig = await startRig()
  for (let index = 0; index < 7; index++)
    ids.unshift(await rig.createRunning({ metadata: { parity: String(index % 2), index: String(index) } }))
})
afterAll(() => rig.close())

async function page(query: string): Promise<{ ids: string[]; next: string | null }> {
  const { status, body } = await rig.call<SandboxPage>('GET', `/v1/sandboxes?${query}`)
  expect(status).toBe(200)
  return { ids: body.items.map((one) => one.id), next: body.next_cursor }
}

test('a list is newest first and ends with a null cursor', async () => {
  expect(await page('')).toEqual({ ids, next: null })
  expect(await page('limit=7')).toEqual({ ids, next: null })
})

test('a cursor survives what is made and deleted meanwhile: nothing twice, nothing left out', async () => {
  const first = await page('limit=3')
  expect(first.ids).toEqual(ids.slice(0, 3))
  const newer = await rig.createRunning()
  const lastOfFirst = first.ids[2] ?? ''
  await rig.call('DELETE', `/v1/sandboxes/${lastOfFirst}`, undefined, { prefer: 'wait=10' })
  const second = await page(`limit=3&cursor=${first.next}`)
  expect(second.ids).toEqual(ids.slice(3, 6))
  const third = await page(`limit=3&cursor=${second.next}`)
  expect(third).toEqual({ ids: ids.slice(6), next: null })
  await rig.call('DELETE', `/v1/sandboxes/${newer}`, undefined, { prefer: 'wait=10' })
  const gone = await page('state=deleted')
  expect(gone.ids).toEqual([newer, lastOfFirst])
  ids.splice(2, 1)
})

test('filters narrow a list: state, template, metadata, each alone and together', async () => {
  expect((await page('state=running')).ids).toEqual(ids)
  expect((await page('state=failed,creating')).ids).toEqual([])
  expect((await page('state=failed&state=running')).ids).toEqual(ids)
  expect((await page('template=base')).ids).toEqual(ids)
  expect((await page('template=base:latest')).ids).toEqual(ids)
  expect((await page(`template=${baseDigest}`)).ids).toEqual(ids)
  expect((await page('template=other')).ids).toEqual([])
  const even = await page('metadata.parity=0')
  expect(even.ids.length).toBeGreaterThan(1)
  expect(even.ids.length).toBeLessThan(ids.length)
  expect((await page('metadata.parity=0&metadata.index=0&state=running')).ids).toEqual(ids.slice(-1))
  expect((await page('metadata.parity=0&metadata.index=1')).ids).toEqual([])
})

test('operations are listed by sandbox, state and kind', async () => {
  const [newest = ''] = ids
  const list = async (query: string) =>
    (await rig.call<OperationPage>('GET', `/v1/operations?${query}`)).body.items.map((one) => one.kind)
  expect(await list(`sandbox=${newest}`)).toEqual(['create'])
  expect(await list(`sandbox=${newest}&state=failed`)).toEqual([])
  expect(await list('kind=delete&state=succeeded')).toEqual(['delete', 'delete'])
})
