import { type CommandToCheck, checkCommand, checkMetadata, limits, PublicError } from '@space/contract'
import { expect, test } from 'vitest'

function refusal(run: () => void): PublicError | undefined {
  try {
    run()
    return undefined
  } catch (thrown) {
    if (thrown instanceof PublicError) return thrown
    throw thrown
  }
}

const argument = (bytes: number) => 'a'.repeat(bytes)
const manyArguments = (count: number, bytes: number) => Array.from({ length: count }, () => argument(bytes))
const entries = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`K${i}`, 'v']))

const taken: [string, CommandToCheck][] = [
  ['4096 entries', { argv: manyArguments(4096, 1) }],
  ['262,144 bytes together', { argv: manyArguments(8, 32_768) }],
  ['one string of 131,071 bytes', { argv: ['x', argument(131_071)] }],
  ['an empty argument after the program', { argv: ['x', ''] }],
  ['256 environment entries', { argv: ['x'], env: entries(256) }],
  ['an environment string of 131,071 bytes', { argv: ['x'], env: { A: argument(131_069) } }],
  ['a cwd of 4096 bytes', { argv: ['x'], cwd: `/${argument(4095)}` }],
  ['64 pairs of metadata', { argv: ['x'], metadata: entries(64) }],
]
test.each(taken)('%s is taken', (_what, command) => {
  expect(refusal(() => checkCommand(command))).toBeUndefined()
})

const refused: [string, CommandToCheck, string][] = [
  ['no argument at all', { argv: [] }, 'argv'],
  ['4097 entries', { argv: manyArguments(4097, 1) }, 'argv'],
  ['262,145 bytes together', { argv: [...manyArguments(8, 32_768), 'b'] }, 'argv'],
  ['bytes are counted, not characters', { argv: ['é'.repeat(65_536)] }, 'argv.0'],
  ['one string of 131,072 bytes', { argv: ['x', argument(131_072)] }, 'argv.1'],
  ['an empty program', { argv: [''] }, 'argv.0'],
  ['a NUL', { argv: ['x', 'a\0b'] }, 'argv.1'],
  ['a lone surrogate', { argv: ['x', '\ud800'] }, 'argv.1'],
  ['257 environment entries', { argv: ['x'], env: entries(257) }, 'env'],
  ['an environment string of 131,072 bytes', { argv: ['x'], env: { A: argument(131_070) } }, 'env.A'],
  ['an environment name with =', { argv: ['x'], env: { 'A=B': 'c' } }, 'env.A=B'],
  ['an empty environment name', { argv: ['x'], env: { '': 'c' } }, 'env.'],
  ['a NUL in the environment', { argv: ['x'], env: { A: '\0' } }, 'env.A'],
  ['a relative cwd', { argv: ['x'], cwd: 'tmp' }, 'cwd'],
  ['a cwd of 4097 bytes', { argv: ['x'], cwd: `/${argument(4096)}` }, 'cwd'],
  ['an empty user', { argv: ['x'], user: '' }, 'user'],
  ['65 pairs of metadata', { argv: ['x'], metadata: entries(65) }, 'metadata'],
]
test.each(refused)('%s is refused, and the message names the field', (_what, command, field) => {
  const error = refusal(() => checkCommand(command))
  expect(error?.code).toBe('invalid_request')
  expect(error?.details['field']).toBe(field)
  expect(error?.message.startsWith(field)).toBe(true)
})

test('a metadata key of 128 and a value of 1024 bytes are taken, one byte more is not', () => {
  const [key, value] = ['k'.repeat(limits.metadata_key_bytes), 'v'.repeat(limits.metadata_value_bytes)]
  expect(refusal(() => checkMetadata({ [key]: value }))).toBeUndefined()
  expect(refusal(() => checkMetadata({ [`${key}k`]: value }))?.details['limit']).toBe(128)
  expect(refusal(() => checkMetadata({ [key]: `${value}v` }))?.details['limit']).toBe(1024)
  expect(refusal(() => checkMetadata({ '': value }))?.code).toBe('invalid_request')
})

test('a message never repeats what a caller put into a key as it is', () => {
  const error = refusal(() => checkMetadata({ [`\u001b[31m${'x'.repeat(300)}`]: 'v' }))
  expect(error?.message).toMatch(/^[\x20-\x7e…]*$/)
  expect(error?.message.length).toBeLessThan(200)
})
