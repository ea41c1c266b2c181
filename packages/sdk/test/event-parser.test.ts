import fc from 'fast-check'
import { expect, test } from 'vitest'
import { EventParser, type ServerEvent } from '../src/event-parser.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

function parseInChunks(text: string, size: number): ServerEvent[] {
  const parser = new EventParser()
  const whole = bytes(text)
  const events: ServerEvent[] = []
  for (let at = 0; at < whole.length; at += size) events.push(...parser.push(whole.subarray(at, at + size)))
  return events
}

const sample =
  '\uFEFF: welcome\nretry: 1500\n\n' +
  'event: stdout\r\nid: 1.3.0\r\ndata: {"data":"YWJj"}\r\n\r\n' +
  'data:first\rdata: second\rdata\r\r' +
  ':\n\nid: 1.4.0\nevent: nothing\n\n' +
  'unknown: field\ndata: grüße 🚀\n\n' +
  'data: never finished\n'

const expected: ServerEvent[] = [
  { event: 'stdout', id: '1.3.0', data: '{"data":"YWJj"}' },
  { event: 'message', id: '1.3.0', data: 'first\nsecond\n' },
  { event: 'message', id: '1.4.0', data: 'grüße 🚀' },
]

test('a stream parses the same however it is cut, down to single bytes', () => {
  for (const size of [1, 2, 3, 5, 7, 64, 100_000]) expect(parseInChunks(sample, size)).toEqual(expected)
})

test('any line endings and any cuts give the same events', () => {
  const data = fc.string({ unit: fc.constantFrom('a', ':', ' ', 'é', '🚀', 'data') })
  fc.assert(
    fc.property(
      fc.array(fc.tuple(data, fc.constantFrom('\n', '\r', '\r\n')), { maxLength: 8 }),
      fc.integer({ min: 1, max: 9 }),
      (lines, size) => {
        const text = lines.map(([value, end]) => `data: ${value}${end}${end}`).join('')
        expect(parseInChunks(text, size).map((event) => event.data)).toEqual(lines.map(([value]) => value))
      },
    ),
  )
})

test('the wait before a reconnect is taken from the stream', () => {
  const parser = new EventParser()
  parser.push(bytes('retry: 1500\n\nretry: soon\n\n'))
  expect(parser.retryMs).toBe(1500)
})

test('an event of exactly the limit is taken, one byte more is refused, in one line or in many', () => {
  const limit = 64
  const line = (length: number) => `data: ${'x'.repeat(length - 6)}`
  expect(new EventParser(limit).push(bytes(`${line(limit)}\n\n`))).toHaveLength(1)
  expect(() => new EventParser(limit).push(bytes(line(limit + 1)))).toThrow('longer than 64 bytes')
  const parser = new EventParser(limit)
  expect(() => {
    for (let index = 0; index < limit; index++) parser.push(bytes('data: 0123456789\n'))
  }).toThrow('longer than 64 bytes')
})
