import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { insertAccount } from '../src/store/accounts.ts'
import { openSqliteStore } from '../src/store/sqlite/store.ts'
import type { Store } from '../src/store/store.ts'

let folder: string
let store: Store
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'space-store-'))
  store = await openSqliteStore(join(folder, 'test.sqlite'))
})
afterEach(async () => {
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

const account = (name: string) => ({ id: `acc-${name}`, name, createdAtMs: 1 })
const names = async () =>
  (await store.read.selectFrom('accounts').select('name').execute()).map((row) => row.name)

test('writes that arrive together are committed together, and one that fails takes nothing else with it', async () => {
  const results = await Promise.allSettled(
    ['a', 'b', 'a', 'c'].map((name) =>
      store.write(async (db) => {
        const row = await insertAccount(db, account(name))
        if (name === 'b') throw new RangeError('not b')
        return row.name
      }),
    ),
  )
  expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
  expect(await names()).toEqual(['a', 'c'])
})

test('nothing is read before it is committed, and everything after', async () => {
  let seenInside: string[] | undefined
  await store.write(async (db) => {
    await insertAccount(db, account('a'))
    seenInside = await names()
  })
  expect(seenInside).toEqual([])
  expect(await names()).toEqual(['a'])
})

test('a store opened again holds what was committed and migrates nothing twice', async () => {
  await store.write((db) => insertAccount(db, account('a')))
  await store.close()
  store = await openSqliteStore(join(folder, 'test.sqlite'))
  expect(await names()).toEqual(['a'])
})

test('closing waits for what was accepted and refuses what comes later', async () => {
  const accepted = store.write((db) => insertAccount(db, account('a')))
  const closed = store.close()
  await expect(store.write((db) => insertAccount(db, account('b')))).rejects.toMatchObject({
    code: 'service_unavailable',
  })
  expect((await accepted).name).toBe('a')
  await closed
  store = await openSqliteStore(join(folder, 'test.sqlite'))
  expect(await names()).toEqual(['a'])
})
