import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { writeCpio } from '../src/images/cpio.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'space-cpio-'))
})
afterAll(async () => {
  await rm(folder, { recursive: true })
})

const files = [
  { path: 'init', mode: 0o755, content: Buffer.from('#!/bin/true\n') },
  { path: 'modules/deep/one.ko', mode: 0o644, content: Buffer.from([0, 1, 2, 255, 10]) },
  { path: 'modules/order', mode: 0o644, content: Buffer.alloc(0) },
]

test('the archive unpacks to the same files, modes and folders', async () => {
  await writeFile(join(folder, 'archive'), writeCpio(files))
  // bsdtar and GNU cpio are not on every host; Python is not either: the archive is read back by its own rules.
  const entries = readNewc(await readFile(join(folder, 'archive')))
  expect(entries.map(({ path, mode }) => [path, mode.toString(8)])).toEqual([
    ['init', '100755'],
    ['modules', '40755'],
    ['modules/deep', '40755'],
    ['modules/deep/one.ko', '100644'],
    ['modules/order', '100644'],
    ['TRAILER!!!', '0'],
  ])
  expect(entries[3]?.content).toEqual(files[1]?.content)
})

test.skipIf(spawnSync('cpio', ['--version']).error !== undefined)('cpio itself unpacks it', async () => {
  const unpacked = spawnSync('cpio', ['--extract', '--make-directories', '--quiet'], {
    cwd: folder,
    input: writeCpio(files),
  })
  expect(unpacked.stderr.toString()).toBe('')
  expect(await readFile(join(folder, 'modules/deep/one.ko'))).toEqual(files[1]?.content)
  expect(((await stat(join(folder, 'init'))).mode & 0o777).toString(8)).toBe('755')
})

test('the same files give the same bytes', () => {
  expect(writeCpio(files).equals(writeCpio(files))).toBe(true)
})

test('every entry carries time zero, so that a rebuild is no new image', () => {
  for (const { time } of readNewc(writeCpio(files))) expect(time).toBe(0)
})

function readNewc(archive: Buffer) {
  const entries: { path: string; mode: number; time: number; content: Buffer }[] = []
  const aligned = (at: number) => (at + 3) & ~3
  for (let at = 0; entries.at(-1)?.path !== 'TRAILER!!!'; ) {
    const field = (index: number) =>
      Number.parseInt(archive.toString('latin1', at + 6 + index * 8, at + 14 + index * 8), 16)
    expect(archive.toString('latin1', at, at + 6)).toBe('070701')
    const nameBytes = field(11)
    const contentAt = aligned(at + 110 + nameBytes)
    entries.push({
      path: archive.toString('utf8', at + 110, at + 110 + nameBytes - 1),
      mode: field(1),
      time: field(5),
      content: Buffer.from(archive.subarray(contentAt, contentAt + field(6))),
    })
    at = aligned(contentAt + field(6))
  }
  return entries
}
