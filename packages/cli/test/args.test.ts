import { Command, InvalidArgumentError } from 'commander'
import { expect, test } from 'vitest'
import { addCommandOptions, commandRequest } from '../src/args/command-request.ts'
import { collectEnv, collectPairs } from '../src/args/pairs.ts'
import { parseCount, parseExpiry, parseSeconds } from '../src/args/quantities.ts'
import { addSandboxOptions, sandboxRequest } from '../src/args/sandbox-request.ts'

test('a time is taken with its unit, and refused without meaning', () => {
  expect(['90', '90s', '5m', '2h', '1d', '0.5s'].map(parseSeconds)).toEqual([90, 90, 300, 7200, 86_400, 0.5])
  for (const text of ['', '0', '-1', '5 m', '5w', '1e3', 'NaN'])
    expect(() => parseSeconds(text), text).toThrow(InvalidArgumentError)
})

test('a count is a whole number from 1 on', () => {
  expect(parseCount('4096')).toBe(4096)
  for (const text of ['', '0', '-1', '1.5', '0x10', 'two'])
    expect(() => parseCount(text), text).toThrow(InvalidArgumentError)
})

test('an expiry lies in the future, given as a span or a time', () => {
  expect(parseExpiry('2999-01-31T00:00:00Z')).toBe('2999-01-31T00:00:00.000Z')
  expect(Date.parse(parseExpiry('1h')) - Date.now()).toBeGreaterThan(3_590_000)
  for (const text of ['2001-01-01', 'soon'])
    expect(() => parseExpiry(text), text).toThrow(InvalidArgumentError)
})

test('a variable is set, passed on, or refused when there is nothing to pass on', () => {
  const collect = collectEnv({ HERE: 'value', EMPTY: '' })
  expect(collect('A=1=2', collect('HERE', collect('EMPTY')))).toEqual({ EMPTY: '', HERE: 'value', A: '1=2' })
  for (const text of ['', '=x', 'MISSING']) expect(() => collect(text), text).toThrow(InvalidArgumentError)
})

test('a pair needs a key', () => {
  expect(collectPairs('k=', collectPairs('a=b=c'))).toEqual({ a: 'b=c', k: '' })
  for (const text of ['', 'k', '=v']) expect(() => collectPairs(text), text).toThrow(InvalidArgumentError)
})

function parse(argv: string[]) {
  const command = addCommandOptions(addSandboxOptions(new Command('run')), {})
    .argument('<argv...>')
    .passThroughOptions()
  command.exitOverride().parse(argv, { from: 'user' })
  return { sandbox: sandboxRequest(command.opts()), command: commandRequest(command.args, command.opts()) }
}

test('options before the program are ours, everything from it on is its own', () => {
  const { sandbox, command } = parse([
    '-t',
    'x:1',
    '--memory-mib',
    '512',
    '-e',
    'A=b',
    '-i',
    'ls',
    '-e',
    '--',
    '-t',
  ])
  expect(sandbox).toEqual({ template: 'x:1', resources: { memory_mib: 512 } })
  expect(command).toEqual({ argv: ['ls', '-e', '--', '-t'], env: { A: 'b' }, stdin: 'pipe' })
})

test('a leading -- is not part of the command, and nothing is sent that was not asked for', () => {
  const { sandbox, command } = parse(['--', '-weird', '', 'a b'])
  expect(sandbox).toEqual({ template: 'base' })
  expect(command).toEqual({ argv: ['-weird', '', 'a b'] })
})
