import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { runSetUp, type SetUpEvent, type SetUpStep, setUpSteps } from '../src/images/index.ts'

test('a step runs after those it needs, and those that do not need each other run together', async () => {
  const running = new Set<string>()
  const together: string[] = []
  const ended: string[] = []
  const run = (id: string) => async () => {
    running.add(id)
    await sleep(20)
    together.push([...running].sort().join('+'))
    running.delete(id)
    ended.push(id)
  }
  await runSetUp(
    [
      step('a', run('a')),
      step('b', run('b'), ['a']),
      step('c', run('c'), ['a']),
      step('d', run('d'), ['b', 'c']),
    ],
    () => undefined,
  )
  expect(together).toContain('b+c')
  expect(ended[0]).toBe('a')
  expect(ended[3]).toBe('d')
})

test('a step that is done is skipped and told so', async () => {
  const events: SetUpEvent[] = []
  const done = { ...step('a', async () => expect.unreachable()), isDone: async () => true }
  await runSetUp([done], (event) => events.push(event))
  expect(events.map(({ kind }) => kind)).toEqual(['skipped'])
})

test('the first failure stops the others, waits for them, and is what is thrown', async () => {
  const ended: string[] = []
  const slow = step('slow', async (_progress, signal) => {
    try {
      await sleep(60_000, undefined, { signal })
    } finally {
      await sleep(10)
      ended.push('slow')
    }
  })
  const failing = step('failing', async () => {
    await sleep(5)
    throw new TypeError('no network')
  })
  const never = step('never', async () => expect.unreachable(), ['failing'])
  await expect(runSetUp([slow, failing, never], () => undefined)).rejects.toThrow('no network')
  expect(ended).toEqual(['slow'])
})

test('an interrupt reaches every running step', async () => {
  const stop = new AbortController()
  const slow = step('slow', async (_progress, signal) => {
    stop.abort(new TypeError('Ctrl-C'))
    await sleep(60_000, undefined, { signal })
  })
  await expect(runSetUp([slow], () => undefined, stop.signal)).rejects.toThrow()
})

test('every step needs only steps named before it, says where it puts things and how to undo them', () => {
  const steps = setUpSteps(
    { home: '/nowhere' },
    { baseSnapshot: { isDone: async () => false, run: async () => undefined } },
  )
  const before = new Set<string>()
  for (const each of steps) {
    for (const id of each.after) expect(before).toContain(id)
    before.add(each.id)
    expect(each.where).not.toBe('')
    expect(each.undo).not.toBe('')
  }
  expect(before).toContain('base-snapshot')
})

test('what is told beforehand stays within 600 MB to fetch, 3 GB on disk and 6 minutes', () => {
  const steps = setUpSteps(
    { home: '/nowhere' },
    { baseSnapshot: { isDone: async () => false, run: async () => undefined } },
  )
  const sum = (of: (each: SetUpStep) => number) => steps.reduce((total, each) => total + of(each), 0)
  expect(sum(({ estimate }) => estimate.fetchBytes)).toBeLessThan(600e6)
  expect(sum(({ estimate }) => estimate.diskBytes)).toBeLessThan(3e9)
  expect(sum(({ estimate }) => estimate.seconds)).toBeLessThan(360)
})

function step(id: string, run: SetUpStep['run'], after: readonly string[] = []): SetUpStep {
  const estimate = { fetchBytes: 0, diskBytes: 0, seconds: 0 }
  return { id, title: id, estimate, where: 'here', undo: 'nothing', after, isDone: async () => false, run }
}
