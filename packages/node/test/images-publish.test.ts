import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { publishFile, publishFolder, readJson, removeFolder, withWorkFolder } from '../src/images/publish.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'space-publish-'))
})
afterEach(async () => {
  await rm(folder, { recursive: true })
})

test('a folder whose making fails leaves nothing behind', async () => {
  const making = publishFolder(join(folder, 'thing'), async (temporary) => {
    await writeFile(join(temporary, 'half'), 'x')
    throw new TypeError('interrupted')
  })
  await expect(making).rejects.toThrow('interrupted')
  expect(await readdir(folder)).toEqual([])
})

test('a folder appears with all that was put into it', async () => {
  const answer = await publishFolder(join(folder, 'thing'), async (temporary) => {
    await writeFile(join(temporary, 'whole'), 'x')
    expect(await readdir(folder)).not.toContain('thing')
    return 7
  })
  expect(answer).toBe(7)
  expect(await readdir(folder)).toEqual(['thing'])
  expect(await readdir(join(folder, 'thing'))).toEqual(['whole'])
})

test('a folder that is there already stays as it is', async () => {
  await mkdir(join(folder, 'thing'))
  await writeFile(join(folder, 'thing', 'first'), '')
  await publishFolder(
    join(folder, 'thing'),
    async (temporary) => await writeFile(join(temporary, 'second'), ''),
  )
  expect(await readdir(join(folder, 'thing'))).toEqual(['first'])
  expect(await readdir(folder)).toEqual(['thing'])
})

test('what a killed process left half-made is removed, what a running one makes is not', async () => {
  const dead = spawnSync('true').pid
  await mkdir(join(folder, `.making-thing-${dead}-00000000`))
  await mkdir(join(folder, `.making-thing-${process.ppid}-00000000`))
  await withWorkFolder(folder, 'other', async () => {
    expect(await readdir(folder)).not.toContain(`.making-thing-${dead}-00000000`)
  })
  expect(await readdir(folder)).toEqual([`.making-thing-${process.ppid}-00000000`])
})

test('a folder that holds a mount is never removed', async () => {
  await expect(removeFolder('/proc')).rejects.toMatchObject({ code: 'host_unsupported' })
  expect((await stat('/proc/self')).isDirectory()).toBe(true)
})

test('a file is replaced whole, and only its owner may read it', async () => {
  const path = join(folder, 'record.json')
  await publishFile(path, '{"a":1}')
  await publishFile(path, '{"a":2}')
  expect(await readFile(path, 'utf8')).toBe('{"a":2}')
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(await readdir(folder)).toEqual(['record.json'])
})

test('a record that is missing or was cut short counts as none', async () => {
  expect(await readJson(join(folder, 'none.json'))).toBeUndefined()
  await writeFile(join(folder, 'cut.json'), '{"a":')
  expect(await readJson(join(folder, 'cut.json'))).toBeUndefined()
})
