import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { decodeBase64 } from '../src/base64.ts'

test('every length and every byte value decodes as it was', () => {
  for (let length = 0; length <= 300; length++) {
    const bytes = randomBytes(length)
    expect(Buffer.from(decodeBase64(bytes.toString('base64'))).equals(bytes)).toBe(true)
  }
  const all = Uint8Array.from({ length: 256 }, (_, value) => value)
  expect(decodeBase64(Buffer.from(all).toString('base64'))).toEqual(all)
})

test('what is not base64 is refused instead of guessed', () => {
  for (const text of ['a', 'ab', 'abc', 'ab*=', '=abc', 'a===', 'YW\nj', 'YWJé', 'YW=j'])
    expect(() => decodeBase64(text), text).toThrow('not base64')
})
