import { formBearer, formId, parseBearer } from '@space/contract'
import { expect, test } from 'vitest'

const secret = 'A-_'.padEnd(43, 'z')

test.each([
  { kind: 'api', id: formId('token', new Uint8Array(16).fill(7)), secret },
  { kind: 'session', id: formId('session', new Uint8Array(16).fill(9)), secret },
] as const)('a bearer value of an $kind begins with spt_ and says whose it is', (bearer) => {
  const value = formBearer(bearer)
  expect(value.startsWith('spt_')).toBe(true)
  expect(parseBearer(value)).toEqual(bearer)
})

test.each([
  '',
  'spt_',
  'spt_x',
  `spt_b${'a'.repeat(68)}`,
  `spt_a${'a'.repeat(67)}`,
  `spt_a${'a'.repeat(69)}`,
])('%j was never one of ours', (value) => {
  expect(parseBearer(value)).toBeUndefined()
})
