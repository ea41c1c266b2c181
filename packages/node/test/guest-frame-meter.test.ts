import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createBucket } from '../src/guest/bucket.ts'
import { createFrameMeter } from '../src/guest/frame-meter.ts'
import { frame, frameTypes } from './guest-frames.ts'

const limits = { maxFrameBytes: 65_536, maxHeaderBytes: 16_384 }

test('every frame is counted once, however the stream is cut', () => {
  const type = fc.constantFrom(
    frameTypes.data,
    frameTypes.headers,
    frameTypes.settings,
    frameTypes.ping,
    frameTypes.windowUpdate,
    0xfe,
  )
  const frames = fc.array(fc.tuple(type, fc.nat(300)), { maxLength: 20 })
  fc.assert(
    fc.property(frames, fc.integer({ min: 1, max: 40 }), (list, pieceBytes) => {
      const meter = createFrameMeter(limits)
      const bytes = Buffer.concat(list.map(([each, length]) => frame(each, Buffer.alloc(length))))
      let counted = 0
      let control = 0
      for (let at = 0; at < bytes.length; at += pieceBytes) {
        const metered = meter.push(bytes.subarray(at, at + pieceBytes))
        counted += metered.frames
        control += metered.controlFrames
      }
      expect([counted, control]).toEqual([
        list.length,
        list.filter(([each]) => each !== frameTypes.data).length,
      ])
    }),
  )
})

test('a frame above the limit is refused at its head, before its payload', () => {
  const meter = createFrameMeter(limits)
  expect(meter.push(frame(frameTypes.data, Buffer.alloc(65_536)))).toEqual({ frames: 1, controlFrames: 0 })
  const head = frame(frameTypes.data, Buffer.alloc(65_537)).subarray(0, 9)
  expect(() => meter.push(head)).toThrow(expect.objectContaining({ kind: 'frame_too_large' }))
})

test('headers are bounded together with their continuations', () => {
  const meter = createFrameMeter(limits)
  meter.push(frame(frameTypes.headers, Buffer.alloc(8_192)))
  meter.push(frame(frameTypes.continuation, Buffer.alloc(8_192)))
  meter.push(frame(frameTypes.headers, Buffer.alloc(16_384)))
  expect(() => meter.push(frame(frameTypes.continuation, Buffer.alloc(1)))).toThrow(
    expect.objectContaining({ kind: 'headers_too_large' }),
  )
})

test('a push is refused', () => {
  const meter = createFrameMeter(limits)
  expect(() => meter.push(frame(frameTypes.pushPromise, Buffer.alloc(4)))).toThrow(
    expect.objectContaining({ kind: 'server_push' }),
  )
})

test('a bucket gives its burst, then its rate, and says how long a debt lasts', () => {
  const bucket = createBucket(1_000, 500, 0)
  expect(bucket.take(500, 0)).toBe(0)
  expect(bucket.take(100, 0)).toBe(100)
  expect(bucket.take(0, 50)).toBe(50)
  expect(bucket.take(0, 100)).toBe(0)
  bucket.add(10_000)
  expect(bucket.take(501, 100)).toBe(1)
})
