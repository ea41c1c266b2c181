import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Gate } from '../src/sandboxes/gate.ts'
import { fileSecrets } from '../src/sandboxes/link-secrets.ts'
import { journalFolder, nodePaths, sandboxPaths } from '../src/sandboxes/paths.ts'
import { roundShape } from '../src/sandboxes/shape.ts'
import { newId } from './fixture/node.ts'

test('a shape is rounded up to the list, and one above it is refused by field', () => {
  expect(roundShape({ vcpus: 1, memoryMib: 128 })).toEqual({ vcpus: 1, memoryMib: 256 })
  expect(roundShape({ vcpus: 3, memoryMib: 1025 })).toEqual({ vcpus: 4, memoryMib: 2048 })
  expect(() => roundShape({ vcpus: 1, memoryMib: 4097 })).toThrow(
    /resources\.memory_mib is 4097.*at most 4096/,
  )
})

test('no path is made of what is no id', () => {
  const paths = nodePaths('/home/of/space')
  const sandboxId = newId('sandbox')
  expect(sandboxPaths(paths, sandboxId).folder).toBe(`/home/of/space/node/sandboxes/${sandboxId}`)
  for (const id of ['', '..', '../x', `${sandboxId}/..`, sandboxId.toUpperCase()]) {
    expect(() => sandboxPaths(paths, id)).toThrow('no id')
    expect(() => journalFolder(paths, sandboxId, id)).toThrow('no id')
  }
})

test('a gate lets so many through, in order, and who gives up leaves no place taken', async () => {
  const gate = new Gate(2)
  const order: number[] = []
  let inside = 0
  let most = 0
  const work = (n: number) => async () => {
    inside += 1
    most = Math.max(most, inside)
    order.push(n)
    await new Promise((resolve) => setTimeout(resolve, 5))
    inside -= 1
    if (n === 1) throw new RangeError('fails')
  }
  const abort = new AbortController()
  const passes = [0, 1, 2, 3, 4].map((n) => gate.pass(work(n), n === 3 ? abort.signal : undefined))
  abort.abort(new RangeError('gave up'))
  const ends = await Promise.allSettled(passes)
  expect(ends.map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'fulfilled',
    'rejected',
    'fulfilled',
  ])
  expect([most, order]).toEqual([2, [0, 1, 2, 4]])
  await gate.pass(work(9))
})

test('secrets of a link are durable with their candidate', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'space-link-'))
  const path = join(folder, 'link.json')
  const current = Buffer.alloc(16, 1)
  const candidate = Buffer.alloc(16, 2)
  await fileSecrets(path).write({ current, candidate })
  expect(await fileSecrets(path).read()).toEqual({ current, candidate })
  await fileSecrets(path).write({ current: candidate })
  expect(await fileSecrets(path).read()).toEqual({ current: candidate })
  expect(Buffer.from((await fileSecrets(join(folder, 'none')).read()).current).toString()).toContain(
    'SPACE-GUEST',
  )
  await rm(folder, { recursive: true })
})
