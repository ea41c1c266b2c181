import { access, mkdir, readdir, readFile, truncate, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { listBases } from '../src/snapshots/base.ts'
import { maxBasesPerTemplate } from '../src/snapshots/bases.ts'
import { sparseDigests } from '../src/snapshots/digest.ts'
import { eventually } from './fixture/eventually.ts'
import { newSandbox, type TestNode, templateDigest, testNode } from './fixture/node.ts'

let node: TestNode
let template = ''
beforeEach(async () => {
  node = await testNode()
  template = join(node.home, 'node', 'templates', templateDigest.slice('sha256:'.length))
})
afterEach(async () => {
  await node.close()
})

const shape = { vcpus: 1, memoryMib: 1024 }

test('a base is made once however many ask, and its machine is gone', async () => {
  await Promise.all([
    node.node.ensureBase('base'),
    node.node.ensureBase('base'),
    node.node.ensureBase('base', shape),
  ])
  expect(node.host.started).toBe(1)
  expect(node.host.machines).toEqual([])
  const folder = join(template, 'bases', '1x1024')
  expect((await readdir(folder)).sort()).toEqual(['devices', 'disk.qcow2', 'manifest.json', 'memory'])
  const manifest = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8'))
  expect(manifest).toMatchObject({ templateDigest, identity: { driver: 'fake', shape } })
  expect(manifest.files).toContainEqual(
    expect.objectContaining({ name: 'memory', sha256: (await sparseDigests([join(folder, 'memory')]))[0] }),
  )
})

test('a base whose files are not as they were made is not restored', async () => {
  await node.node.ensureBase('base')
  await truncate(join(template, 'bases', '1x1024', 'memory'), 10)
  const started = node.host.started
  await newSandbox(node)
  await eventually(() => node.host.started).toBe(started + 2)
  await eventually(async () => (await listBases(template)).length).toBe(1)
  await node.node.ensureBase('base')
})

test('the least recently used base goes when a template has too many', async () => {
  const bases = join(template, 'bases')
  for (let memoryMib = 1; memoryMib <= maxBasesPerTemplate; memoryMib += 1) {
    await mkdir(join(bases, `1x${memoryMib}`), { recursive: true })
    await utimes(join(bases, `1x${memoryMib}`), 1000 + memoryMib, 1000 + memoryMib)
  }
  await node.node.ensureBase('base')
  const left = (await listBases(template)).map(({ memoryMib }) => memoryMib)
  expect(left).toEqual([1024, 8, 7, 6, 5, 4, 3, 2])
})

test('what an interrupted making left is cleared at the next start', async () => {
  const left = join(template, 'bases', '.making-1x1024-1-2')
  await mkdir(join(left, 'machine'), { recursive: true })
  await writeFile(join(left, 'memory'), 'half')
  node = await node.restart()
  await expect(access(left)).rejects.toThrow('ENOENT')
})

test('the digest tells moved bytes from the same bytes, and holes from nothing', async () => {
  const paths = ['a', 'b', 'c'].map((name) => join(node.home, name))
  const [a = '', b = '', c = ''] = paths
  const chunk = 64 * 1024
  await writeFile(a, Buffer.concat([Buffer.alloc(chunk), Buffer.alloc(chunk, 1)]))
  await writeFile(b, Buffer.concat([Buffer.alloc(chunk, 1), Buffer.alloc(chunk)]))
  await writeFile(c, Buffer.alloc(0))
  await truncate(c, 2 * chunk)
  const digests = await sparseDigests(paths)
  expect(new Set(digests).size).toBe(3)
  await expect(sparseDigests([join(node.home, 'missing')])).rejects.toThrow('ENOENT')
})
