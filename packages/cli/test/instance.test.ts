import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { lockOrFail, tryLock } from '../src/server/instance.ts'

let home = ''
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'space-lock-'))
})
afterAll(() => rm(home, { recursive: true }))

test('one process holds a home, others are told who; a killed holder holds nothing', async () => {
  const holder = spawn(process.execPath, ['--input-type=module', '-e', holderSource(home)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(holder.stdout, 'data')
  expect(await tryLock(home)).toBeUndefined()
  await expect(lockOrFail(home)).rejects.toThrow(`pid ${holder.pid}, at http://127.0.0.1:7070`)
  const ended = once(holder, 'exit')
  holder.kill('SIGKILL')
  await ended
  {
    await using lock = await lockOrFail(home)
    await lock.announce({ pid: process.pid, apiUrl: 'http://x.test', startedAt: 'now' })
    expect(await tryLock(home)).toBeUndefined()
  }
  await using again = await tryLock(home)
  expect(again).toBeDefined()
})

function holderSource(folder: string): string {
  const module = JSON.stringify(join(import.meta.dirname, '../src/server/instance.ts'))
  return `
    const { lockOrFail } = await import(${module})
    const lock = await lockOrFail(${JSON.stringify(folder)})
    await lock.announce({ pid: process.pid, apiUrl: 'http://127.0.0.1:7070', startedAt: 'now' })
    console.log('locked')
    setInterval(() => lock, 1000)`
}
