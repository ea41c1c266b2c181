import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { templateStore } from '../src/images/index.ts'
import { projectRoot } from '../src/images/paths.ts'
import { readRecipe } from '../src/images/recipe.ts'

let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'space-templates-'))
})
afterEach(async () => {
  await rm(home, { recursive: true })
})

const old = 'a'.repeat(64)
const current = 'b'.repeat(64)

test('a template is found by name, by tag, by alias and by digest', async () => {
  await releases()
  const store = templateStore({ home })
  for (const reference of ['base', 'base:latest', 'seed:latest', 'seed', `sha256:${current}`])
    expect((await store.resolve(reference))?.digest).toBe(`sha256:${current}`)
  expect((await store.resolve('base:before'))?.digest).toBe(`sha256:${old}`)
  expect((await store.resolve(`sha256:${old}`))?.tags).toEqual(['base:before'])
})

test('a reference that names nothing finds nothing, whatever it looks like', async () => {
  await releases()
  const store = templateStore({ home })
  for (const reference of [
    '',
    'other',
    'base:other',
    'sha256:',
    `sha256:${'c'.repeat(64)}`,
    `sha256:../${current}`,
    '../base',
    '__proto__',
    'constructor',
  ])
    expect(await store.resolve(reference)).toBeUndefined()
})

test('the list names each release once, the newest first; what is half-made is not in it', async () => {
  await releases()
  await mkdir(join(home, 'node', 'templates', '.making-x-1-00'), { recursive: true })
  const listed = await templateStore({ home }).list()
  expect(listed.map(({ digest }) => digest)).toEqual([`sha256:${current}`, `sha256:${old}`])
})

test('before the first build the list is empty', async () => {
  expect(await templateStore({ home }).list()).toEqual([])
})

test('a release a tag points at is not removed, another one is', async () => {
  await releases()
  const store = templateStore({ home })
  await store.remove(`sha256:${current}`)
  await writeFile(
    join(home, 'node', 'templates', 'tags.json'),
    JSON.stringify({ 'base:latest': `sha256:${current}` }),
  )
  await store.remove(`sha256:${old}`)
  expect((await store.list()).map(({ digest }) => digest)).toEqual([`sha256:${current}`])
})

test('a changed recipe makes the release no longer current', async () => {
  await releases()
  const recipes = join(home, 'recipes')
  const { folder } = await readRecipe(join(projectRoot, 'templates'), 'base')
  await mkdir(recipes)
  const { cp, appendFile } = await import('node:fs/promises')
  await cp(folder, join(recipes, 'base'), { recursive: true })
  const { hash } = await readRecipe(recipes, 'base')
  await release(current, hash, '2026-02-01')
  const store = templateStore({ home }, recipes)
  expect(await store.isCurrent('base')).toBe(true)
  await appendFile(join(recipes, 'base', 'set-up.sh'), '\ntrue\n')
  expect(await store.isCurrent('base')).toBe(false)
})

test("the project's own recipe of base reads, with seed as its alias", async () => {
  const recipe = await readRecipe(join(projectRoot, 'templates'), 'base')
  expect(recipe.tags).toEqual(['base:latest', 'seed:latest'])
  expect(recipe.defaults).toMatchObject({ user: 'user', cwd: '/home/user' })
  expect(recipe.defaultShape).toEqual({ vcpus: 1, memoryMib: 1024 })
})

test('a recipe that names an option as a package is refused', async () => {
  await mkdir(join(home, 'evil'))
  const recipe = {
    name: 'evil',
    tags: [],
    suite: 'bookworm',
    packages: ['--purge'],
    left_out: [],
    npm: { version: '1', integrity: 'x' },
    disk_mib: 1,
    default_shape: { vcpus: 1, memory_mib: 1 },
    defaults: { user: 'u', cwd: '/', env: {} },
  }
  await writeFile(join(home, 'evil', 'recipe.json'), JSON.stringify(recipe))
  await expect(readRecipe(home, 'evil')).rejects.toMatchObject({ code: 'recipe_invalid' })
})

async function releases(): Promise<void> {
  await release(old, 'x', '2026-01-01')
  await release(current, 'y', '2026-02-01')
  const tags = {
    'base:latest': `sha256:${current}`,
    'seed:latest': `sha256:${current}`,
    'base:before': `sha256:${old}`,
  }
  await writeFile(join(home, 'node', 'templates', 'tags.json'), JSON.stringify(tags))
}

async function release(hex: string, recipeHash: string, createdAt: string): Promise<void> {
  const folder = join(home, 'node', 'templates', hex)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'root.ext4'), 'image')
  const record = {
    name: 'base',
    digest: `sha256:${hex}`,
    recipe_hash: recipeHash,
    size_bytes: 5,
    disk_mib: 8192,
    default_shape: { vcpus: 1, memory_mib: 1024 },
    defaults: { user: 'user', cwd: '/home/user', env: { LANG: 'C.UTF-8' } },
    created_at: createdAt,
  }
  await writeFile(join(folder, 'template.json'), JSON.stringify(record))
}
