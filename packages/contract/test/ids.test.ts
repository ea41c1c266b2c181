import { formId, type IdKind, idPrefixes, isId } from '@space/contract'
import fc from 'fast-check'
import { expect, test } from 'vitest'

const entropy = fc.uint8Array({ minLength: 16, maxLength: 16 })
const kind = fc.constantFrom(...(Object.keys(idPrefixes) as IdKind[]))

test('every id is its prefix and 25 lower-case letters and digits: a DNS label', () => {
  fc.assert(
    fc.property(kind, entropy, (of, bytes) => {
      const id = formId(of, bytes)
      expect(id).toMatch(/^[a-z][a-z0-9]{26,27}$/)
      expect(isId(of, id)).toBe(true)
    }),
  )
})

test('different randomness makes different ids', () => {
  fc.assert(
    fc.property(entropy, entropy, (one, other) => {
      const same = Buffer.from(one).equals(Buffer.from(other))
      expect(formId('sandbox', one) === formId('sandbox', other)).toBe(same)
    }),
  )
})

test.each([
  ['', 'empty'],
  ['sbx', 'too short'],
  [formId('process', new Uint8Array(16)), 'of another kind'],
  [`${formId('sandbox', new Uint8Array(16))}0`, 'too long'],
  [formId('sandbox', new Uint8Array(16)).toUpperCase(), 'in upper case'],
  [`${formId('sandbox', new Uint8Array(16))}\n`, 'followed by a newline'],
])('%j is no sandbox id: %s', (text) => {
  expect(isId('sandbox', text)).toBe(false)
})
