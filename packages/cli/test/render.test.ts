import { SpaceError } from '@space/sdk'
import { expect, test } from 'vitest'
import { CliFailure, Interrupted } from '../src/failure.ts'
import { exitCodeOf, explainExit, seemsToLackNetwork } from '../src/render/exit.ts'
import { describeFailure, failureJson, renderFailure } from '../src/render/failure.ts'
import { renderPlan } from '../src/render/plan.ts'
import { renderAge, renderBytes, renderDuration } from '../src/render/quantity.ts'
import { renderRecord } from '../src/render/record.ts'
import { renderTable } from '../src/render/table.ts'
import { cut, shellLine, visible } from '../src/render/text.ts'

const exit = { exitCode: null, signal: null, timedOut: false } as const

test('run exits with what a shell would, and never mistakes a failure of SPACE for a code of the command', () => {
  expect(exitCodeOf({ ...exit, reason: 'exited', exitCode: 7 })).toBe(7)
  expect(exitCodeOf({ ...exit, reason: 'signalled', signal: 15 })).toBe(143)
  expect(exitCodeOf({ ...exit, reason: 'out_of_memory', signal: 9 })).toBe(137)
  expect(exitCodeOf({ ...exit, reason: 'timeout', signal: 9, timedOut: true })).toBe(124)
  expect(exitCodeOf({ ...exit, reason: 'failed_to_start', errno: 'ENOENT' })).toBe(127)
  expect(exitCodeOf({ ...exit, reason: 'failed_to_start', errno: 'EACCES' })).toBe(126)
  for (const reason of ['cancelled', 'lost', 'sandbox_deleted'] as const)
    expect(exitCodeOf({ ...exit, reason })).toBe(125)
})

test('an end the output does not explain is explained, an ordinary one is not', () => {
  expect(explainExit({ ...exit, reason: 'exited', exitCode: 1 }, ['x'])).toBeUndefined()
  expect(explainExit({ ...exit, reason: 'signalled', signal: 11 }, ['x'])).toBe('ended by SIGSEGV')
  expect(explainExit({ ...exit, reason: 'failed_to_start', errno: 'ENOENT' }, ['nope'])).toMatch(
    /^nope could not be started.*ENOENT/,
  )
})

test('a missing network is suspected only of a command that failed and complained of it', () => {
  const complaints = [
    'curl: (6) Could not resolve host: example.com',
    "fatal: unable to access 'https://…': Failed to connect: Network is unreachable",
    'E: Temporary failure resolving deb.debian.org',
    'npm error code EAI_AGAIN',
    'urllib3.exceptions.NewConnectionError: Failed to establish a new connection',
  ]
  for (const text of complaints) {
    expect(seemsToLackNetwork({ ...exit, reason: 'exited', exitCode: 6 }, text), text).toBe(true)
    expect(seemsToLackNetwork({ ...exit, reason: 'exited', exitCode: 0 }, text), text).toBe(false)
  }
  expect(seemsToLackNetwork({ ...exit, reason: 'exited', exitCode: 1 }, 'no such file')).toBe(false)
})

test('every failure has a message, an exit code, and where one is known a remedy', () => {
  const lost = { message: 'x', status: 0, details: {}, retryable: true, requestId: '' }
  expect(describeFailure(new SpaceError({ ...lost, code: 'connection_failed' }))).toMatchObject({
    exitCode: 4,
  })
  const missing = describeFailure(
    new SpaceError({
      code: 'not_found',
      message: 'no such sandbox',
      status: 404,
      details: {},
      retryable: false,
      requestId: 'r1',
    }),
  )
  if (missing.message === undefined) throw new Error('nothing is shown')
  expect(renderFailure(missing)).toMatch(/^space: no such sandbox \(request r1\)\n {2}→ /)
  expect(JSON.parse(failureJson(missing))).toMatchObject({ error: { code: 'not_found', request_id: 'r1' } })
  expect(describeFailure(new CliFailure('a', { remedy: 'b', exitCode: 9 }))).toMatchObject({
    remedy: 'b',
    exitCode: 9,
  })
  expect(describeFailure(Object.assign(new Error('c'), { code: 'no_apt', remedy: 'd' }))).toMatchObject({
    remedy: 'd',
  })
  expect(describeFailure(new Interrupted('SIGTERM'))).toEqual({ exitCode: 143, message: undefined })
})

test('control characters of others cannot move a cursor', () => {
  expect(visible('a\x1b[2Jb\n\u202Ec')).toBe('a\\x1b[2Jb\\x0a\\u{202e}c')
  expect(shellLine(['sh', '-c', "echo 'x y'; \x07", ''])).toBe("sh -c 'echo '\\''x y'\\''; \\x07' ''")
  expect(renderTable(['A'], [['\x1b[31mred']])).not.toContain('\x1b')
  expect(renderRecord({ message: '\x1b]0;title\x07' })).not.toContain('\x1b')
})

test('quantities read as a person would write them', () => {
  expect([0, 1023, 1536, 150 * 1024 ** 2, 5 * 1024 ** 4].map(renderBytes)).toEqual([
    '0 B',
    '1023 B',
    '1.5 KiB',
    '150 MiB',
    '5.0 TiB',
  ])
  expect([400, 59_000, 250_000, 7_500_000, 2.6e8].map(renderDuration)).toEqual([
    '0s',
    '59s',
    '4m 10s',
    '2h 5m',
    '3d',
  ])
  expect(renderAge(null, 0)).toBe('-')
  expect(renderAge('2030-01-01T00:00:00.000Z', Date.parse('2030-01-01T00:01:00Z'))).toBe('1m')
  expect(cut('abcdef', 4)).toBe('abc…')
})

test('a table lines its columns up and ends its lines without spaces', () => {
  expect(
    renderTable(
      ['ID', 'STATE'],
      [
        ['a', 'running'],
        ['longer', ''],
      ],
    ),
  ).toBe('ID      STATE\na       running\nlonger')
})

test('a record shows nested fields indented and leaves out what is not there', () => {
  expect(renderRecord({ id: 'x', gone: null, list: ['a', 'b'], inner: { n: 1, none: {} } })).toBe(
    'id: x\nlist: a b\ninner:\n  n: 1',
  )
})

test('a plan says what is fetched and kept, where, and how to undo it', () => {
  const estimate = { fetchBytes: 1024 ** 2, diskBytes: 2 * 1024 ** 2, seconds: 30 }
  const text = renderPlan(
    [
      { title: 'packages', estimate, where: 'the system', undo: 'apt-get remove them.' },
      { title: 'kernel', estimate, where: '/home/space/node', undo: 'unused' },
    ],
    '/home/space',
  )
  expect(text).toMatch(/2\.0 MiB +4\.0 MiB +≤ 1m +together/)
  expect(text).toMatch(/packages: the system\n/)
  expect(text).toContain('apt-get remove them.')
  expect(text).toContain('space down --purge')
  expect(text).not.toContain('unused')
})
