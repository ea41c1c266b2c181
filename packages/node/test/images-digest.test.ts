import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { imageDigest } from '../src/images/image-digest.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'space-digest-'))
})
afterAll(async () => {
  await rm(folder, { recursive: true })
})

const size = 3 * 1024 * 1024 + 4096

test('a hole and written zeros are the same image', async () => {
  const sparse = await image('sparse', size, [
    [1_000_000, 'content'],
    [size - 7, 'content'],
  ])
  const full = join(folder, 'full')
  const bytes = Buffer.alloc(size)
  bytes.write('content', 1_000_000)
  bytes.write('content', size - 7)
  await writeFile(full, bytes)
  expect(await imageDigest(sparse, 's')).toBe(await imageDigest(full, 's'))
})

test('a bit, its place, the size and the recipe all count', async () => {
  const digests = await Promise.all([
    imageDigest(await image('1', size, [[70_000, 'content']]), 's'),
    imageDigest(await image('2', size, [[70_000, 'contenu']]), 's'),
    imageDigest(await image('3', size, [[70_000 + 65_536, 'content']]), 's'),
    imageDigest(await image('4', size + 65_536, [[70_000, 'content']]), 's'),
    imageDigest(await image('5', size, [[70_000, 'content']]), 't'),
  ])
  expect(new Set(digests).size).toBe(digests.length)
  for (const digest of digests) expect(digest).toMatch(/^sha256:[0-9a-f]{64}$/)
})

async function image(
  name: string,
  bytes: number,
  content: readonly (readonly [number, string])[],
): Promise<string> {
  const path = join(folder, name)
  const file = await open(path, 'w')
  await file.truncate(bytes)
  for (const [at, text] of content) await file.write(text, at)
  await file.close()
  return path
}
