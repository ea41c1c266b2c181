import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { namespacePath, openTap, SlotPool, SlotRegistry } from '../src/net/index.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'space-slots-'))
})
afterAll(() => rm(folder, { recursive: true }))

// Numbers far above those a running SPACE takes, in a registry of the test's own.
const uids = { first: 2_100_100_000, count: 4096 }

function pool(home: string): SlotPool {
  return new SlotPool({ home, registry: join(folder, 'pool'), uids })
}

describe('slot numbers', () => {
  it('are never held twice, whichever homes ask', () => {
    const registry = new SlotRegistry(join(folder, 'a'), 8)
    const taken = Array.from(
      { length: 8 },
      (_, index) => registry.take(index % 2 ? '/one' : '/two', () => true)?.number,
    )
    expect([...taken].sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    expect(registry.take('/three', () => true)).toBeUndefined()
    expect(registry.heldBy('/one').map(({ number }) => number)).toHaveLength(4)
  })

  it('are skipped when something of them is there already', () => {
    const registry = new SlotRegistry(join(folder, 'b'), 8)
    expect(registry.take('/one', (number) => number >= 3)?.number).toBe(3)
    expect(registry.read(0)).toBeUndefined()
  })

  it('are freed by their holder only', () => {
    const registry = new SlotRegistry(join(folder, 'c'), 8)
    const first = registry.take('/one', () => true)
    registry.free(0, 'somebody else')
    expect(registry.holds(0, first?.entry.token ?? '')).toBe(true)
    registry.free(0, first?.entry.token ?? '')
    const second = registry.take('/one', () => true)
    expect([second?.number, registry.holds(0, first?.entry.token ?? '')]).toEqual([0, false])
  })
})

describe('a slot', () => {
  it('is a namespace with loopback and tap, no uplink, no route out, and everything dropped', async () => {
    const slots = pool('/home/a')
    const slot = await slots.acquire(join(folder, 'machine'))
    const ip = (...args: string[]) =>
      JSON.parse(execFileSync('ip', ['-n', slot.namespace, '-j', ...args], { encoding: 'utf8' }) || '[]')
    expect(ip('link').map(({ ifname }: { ifname: string }) => ifname)).toEqual(['lo', 'tap0'])
    expect(ip('route')).toMatchObject([{ dst: '169.254.0.20/30', dev: 'tap0' }])
    const rules = execFileSync('ip', ['netns', 'exec', slot.namespace, 'nft', 'list', 'ruleset'], {
      encoding: 'utf8',
    })
    expect(rules.match(/policy drop/g)).toHaveLength(4)
    using tap = openTap(slot.namespace)
    expect(() => openTap(slot.namespace)).toThrow('EBUSY')
    tap.close()
    await slots.release(slot)
    await slots.release(slot)
    expect([
      existsSync(namespacePath(slot.namespace)),
      ...slot.groupFolders.map((path) => existsSync(path)),
    ]).not.toContain(true)
  })

  it('left by a killed node is removed at the next start, one with a living machine is not', async () => {
    const slots = pool('/home/b')
    const kept = await slots.acquire(join(folder, 'kept'))
    const lost = await slots.acquire(join(folder, 'lost'))
    const others = await pool('/home/c').acquire(join(folder, 'others'))
    mkdirSync(join(folder, 'kept'))
    const next = pool('/home/b')
    await next.sweep((path, token) => existsSync(path) && token === kept.token)
    const there = [kept, lost, others].map(({ namespace }) => existsSync(namespacePath(namespace)))
    expect(there).toEqual([true, false, true])
    await next.release(kept)
    await pool('/home/c').release(others)
  })

  it('made ahead is there at once and removed by stop', async () => {
    const slots = pool('/home/d')
    slots.keep(1)
    const slot = await slots.acquire(join(folder, 'd'))
    await slots.stop()
    await slots.release(slot)
    expect(new SlotRegistry(join(folder, 'pool'), 4096).heldBy('/home/d')).toEqual([])
  })
})
