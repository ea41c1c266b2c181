import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { defaultSources, mirrorsAmong } from '../src/images/apt.ts'
import { settledRate } from '../src/images/host-facts.ts'
import { findProgram, runProgram } from '../src/images/program.ts'
import { isAtLeast } from '../src/images/toolchain.ts'
import { measureTscKhz } from '../src/images/tsc.ts'

test("packages come from the host's own mirror of the guest's release, and from no other repository", () => {
  const listed = [
    'Debian|oldstable|bookworm|bookworm|main|http://mirror.corp/debian/',
    'Debian|oldstable|bookworm|bookworm|contrib|http://mirror.corp/debian/',
    'Debian|oldstable-security|bookworm-security|bookworm-security|main|http://mirror.corp/security/',
    'Hashi|bookworm|bookworm|bookworm|main|http://other.example/',
    'Docker|bookworm|bookworm|bookworm|stable|http://docker.example/',
  ].join('\n')
  expect(mirrorsAmong(listed)).toEqual([
    'deb http://mirror.corp/debian bookworm main',
    'deb http://mirror.corp/security bookworm-security main',
  ])
})

test("a host of another release uses Debian's own servers", () => {
  expect(mirrorsAmong('Ubuntu|noble|noble|noble|main|http://archive.example/ubuntu/')).toBe(defaultSources)
  expect(mirrorsAmong('')).toBe(defaultSources)
})

test('versions compare as numbers, part by part', () => {
  expect(isAtLeast('1.26.0', '1.26')).toBe(true)
  expect(isAtLeast('1.9', '1.26')).toBe(false)
  expect(isAtLeast('1.26.8', '1.26.10')).toBe(false)
  expect(isAtLeast('2.0', '1.26.8')).toBe(true)
})

test('a clock rate measured again within the error stays what it was; another processor has its own', () => {
  const before = { tscKhz: 2_445_405, cpuModel: 'A', bootId: '1' }
  expect(settledRate(before, { tscKhz: 2_445_430, cpuModel: 'A', bootId: '2' })).toBe(2_445_405)
  expect(settledRate(before, { tscKhz: 2_446_000, cpuModel: 'A', bootId: '2' })).toBe(2_446_000)
  expect(settledRate(before, { tscKhz: 2_445_430, cpuModel: 'B', bootId: '2' })).toBe(2_445_430)
  expect(settledRate(undefined, before)).toBe(2_445_405)
})

test('two measurements of the clock rate agree within 100 parts in a million', {
  timeout: 30_000,
}, async () => {
  const [first, second] = [await measureTscKhz(), await measureTscKhz()]
  expect(Math.abs(first - second) / first).toBeLessThan(100e-6)
})

test('a program that fails tells its last lines, one that is missing says how to get it', async () => {
  const failing = runProgram('sh', ['-c', 'echo first >&2; echo the reason >&2; exit 3'])
  await expect(failing).rejects.toMatchObject({
    code: 'program_failed',
    message: expect.stringMatching(/ended with 3: first\nthe reason/),
  })
  await expect(runProgram('space-no-such-program', [])).rejects.toMatchObject({ code: 'program_missing' })
  expect(await findProgram('space-no-such-program')).toBeUndefined()
})

test('a program that prints more than is kept has failed', async () => {
  await expect(
    runProgram('head', ['-c', '1000', '/dev/zero'], { maxStdoutBytes: 999 }),
  ).rejects.toMatchObject({ code: 'program_failed' })
  expect(await runProgram('head', ['-c', '999', '/dev/zero'], { maxStdoutBytes: 999 })).toHaveLength(999)
})

test('an interrupt ends a program with all it started', async () => {
  const stop = new AbortController()
  const pids: number[] = []
  const running = runProgram('sh', ['-c', 'sleep 999 & echo $!; wait'], {
    signal: stop.signal,
    onLine: (line) => {
      pids.push(Number(line))
      stop.abort(new TypeError('Ctrl-C'))
    },
  })
  await expect(running).rejects.toThrow('Ctrl-C')
  const [child] = pids
  for (let waited = 0; waited < 100 && existsSync(`/proc/${child}/cwd`); waited++) await sleep(20)
  expect(child).toBeGreaterThan(1)
  expect(existsSync(`/proc/${child}/cwd`)).toBe(false)
})
