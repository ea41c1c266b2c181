import { access, mkdir, readdir, readFile, rename, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { agentKey } from '../src/images/agent.ts'
import { projectRoot } from '../src/images/paths.ts'
import { newSandbox, type TestNode, templateDigest, testNode } from './fixture/node.ts'

/** The node's image is `sha256:image` with files in `/`: everything below is another one's. */
let node: TestNode
beforeEach(async () => {
  node = await testNode()
})
afterEach(async () => {
  await node.close()
})

const current = 'a'.repeat(64)
const unused = 'b'.repeat(64)
const needed = 'c'.repeat(64)
const currentAgent = 'a'.repeat(16)
const oldAgent = 'b'.repeat(16)

function under(...names: string[]): string {
  return join(node.home, 'node', ...names)
}

/** Makes a folder, or a file where there is content, of that age. */
async function make(path: string, ageSeconds: number, content?: string): Promise<void> {
  await mkdir(content === undefined ? path : join(path, '..'), { recursive: true })
  if (content !== undefined) await writeFile(path, content)
  const seconds = Date.now() / 1000 - ageSeconds
  await utimes(path, seconds, seconds)
}

const days = 24 * 60 * 60

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  )
}

async function images(): Promise<void> {
  for (const name of [current, unused, needed]) await make(under('images', name), 2 * days)
  const record = { digest: current, agent: currentAgent, kernel: 'k' }
  await make(under('images', 'current.json'), 0, JSON.stringify(record))
}

/** A release of its own with nothing that points at it. */
async function release(hex: string, ageSeconds = 2 * days): Promise<string> {
  const folder = under('templates', hex)
  await make(join(folder, 'root.ext4'), 0, 'image')
  const template = {
    name: 'base',
    digest: `sha256:${hex}`,
    recipe_hash: 'x',
    size_bytes: 5,
    disk_mib: 8192,
    default_shape: { vcpus: 1, memory_mib: 1024 },
    defaults: { user: 'user', cwd: '/', env: {} },
    created_at: '2026-01-01T00:00:00.000Z',
  }
  await make(join(folder, 'template.json'), 0, JSON.stringify(template))
  await make(folder, ageSeconds)
  return folder
}

/** Makes a stopped node's sandbox one of another image and template. */
async function rewrite(sandboxId: string, change: object): Promise<void> {
  const path = under('sandboxes', sandboxId, 'sandbox.json')
  await writeFile(path, JSON.stringify({ ...JSON.parse(await readFile(path, 'utf8')), ...change }))
}

test('a guest image goes at the start unless it is current, a sandbox names it, or it is young', async () => {
  await images()
  const young = 'd'.repeat(64)
  await make(under('images', young), 60)
  await make(under('images', '.making-x-1-00'), 2 * days)
  const sandboxId = await newSandbox(node)
  await node.node.release()
  const files = { vmlinux: 'vmlinux', initramfs: 'initramfs.cpio', modulesDrive: 'modules.ext4' }
  const paths = Object.entries(files).map(([key, file]) => [key, under('images', needed, file)])
  await rewrite(sandboxId, {
    guestImage: { ...Object.fromEntries(paths), kernelRelease: 'k', digest: 'sha256:other' },
  })
  node = await node.restart()
  expect((await readdir(under('images'))).sort()).toEqual(
    ['.making-x-1-00', current, needed, young, 'current.json'].sort(),
  )
})

test('without a current image none goes', async () => {
  await make(under('images', unused), 2 * days)
  node = await node.restart()
  expect(await readdir(under('images'))).toEqual([unused])
})

test('a release goes unless a tag or a sandbox names it, by digest or in its disk', async () => {
  const sandboxes = [await newSandbox(node), await newSandbox(node)]
  await node.node.release()
  const [byDigest = '', byDisk = ''] = sandboxes
  const folders = await Promise.all([unused, needed, current].map((hex) => release(hex)))
  const young = await release('d'.repeat(64), 60)
  await rewrite(byDigest, { templateDigest: `sha256:${needed}` })
  const base = under('templates', current, 'root.ext4')
  await rewrite(byDisk, { disk: { base, frozen: [], writable: under('sandboxes', byDisk, 'disk.qcow2') } })
  node = await node.restart()
  expect(await Promise.all([...folders, young].map(isThere))).toEqual([false, true, true, true])
  expect(await isThere(under('templates', templateDigest.slice('sha256:'.length)))).toBe(true)
})

test('an old build of the agent goes; the current one, the next one and one being made stay', async () => {
  await images()
  const next = await agentKey(join(projectRoot, 'guest'))
  const ages = {
    [currentAgent]: 2 * days,
    [next]: 2 * days,
    [oldAgent]: 2 * days,
    [`${oldAgent}.making-1`]: 2 * days,
    [`${next}.making-2`]: 60,
    '.work': 60,
    'not-ours': 2 * days,
  }
  for (const [name, age] of Object.entries(ages)) await make(under('cache', 'agent', name), age, 'x')
  node = await node.restart()
  expect((await readdir(under('cache', 'agent'))).sort()).toEqual(
    [currentAgent, next, `${next}.making-2`, '.work', 'not-ours'].sort(),
  )
})

test('a base snapshot of another guest image goes, one of this stays', async () => {
  await node.node.ensureBase('base')
  const bases = under('templates', templateDigest.slice('sha256:'.length), 'bases')
  const manifest = {
    version: 1,
    templateDigest,
    identity: { guestImageDigest: 'sha256:other' },
    linkSecret: '',
    files: [],
  }
  await make(join(bases, '2x2048', 'manifest.json'), 0, JSON.stringify(manifest))
  node = await node.restart()
  expect(await readdir(bases)).toEqual(['1x1024'])
})

test.each(['images', 'templates', 'cache'])(
  'nothing goes when node/%s is shared with another home',
  async (link) => {
    await images()
    await make(under('cache', 'agent', oldAgent), 2 * days, 'x')
    const folder = await release(unused)
    await rename(under(link), join(node.home, 'elsewhere'))
    await symlink(join(node.home, 'elsewhere'), under(link))
    node = await node.restart()
    const things = [folder, under('images', unused), under('cache', 'agent', oldAgent)]
    expect(await Promise.all(things.map(isThere))).toEqual([true, true, true])
  },
)

test('what cannot be removed does not keep the node from starting', async () => {
  await images()
  await make(under('cache'), 0, 'a file where a folder should be')
  node = await node.restart()
  const sandboxId = await newSandbox(node)
  expect(await readdir(under('sandboxes'))).toEqual([sandboxId])
})
