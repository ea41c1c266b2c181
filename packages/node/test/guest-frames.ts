import { create, toBinary } from '@bufbuild/protobuf'
import { AttachResponseSchema, OutputSchema } from '@space/contract/guest'

/** Numbers of HTTP/2's frame types. */
export const frameTypes = {
  data: 0,
  headers: 1,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

/** One HTTP/2 frame, made by hand. */
export function frame(type: number, payload: Uint8Array, flags = 0, stream = 0): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** WINDOW_UPDATE of the connection by one byte: legal, and free of any effect. */
export const windowUpdate: Buffer = frame(frameTypes.windowUpdate, Buffer.from([0, 0, 0, 1]))

export const settings: Buffer = frame(frameTypes.settings, Buffer.alloc(0))

/** A whole answer of an Attach call on one stream: its headers, one Output in several frames, and its end. */
export function responseFrames(stream: number, data: Uint8Array): Buffer[] {
  const type = Buffer.from('application/connect+proto')
  // HPACK: ":status 200" of the static table, then content-type as a literal.
  const headers = Buffer.concat([Buffer.from([0x88, 0x0f, 0x10, type.length]), type])
  const output = create(OutputSchema, { stream: 1, offset: 0n, data })
  const response = create(AttachResponseSchema, { kind: { case: 'output', value: output } })
  const message = toBinary(AttachResponseSchema, response)
  const body = Buffer.concat([envelope(0, message), envelope(2, Buffer.from('{}'))])
  const frames = [frame(frameTypes.headers, headers, 4, stream)]
  for (let at = 0; at < body.length; at += 16_384) {
    const last = at + 16_384 >= body.length
    frames.push(frame(frameTypes.data, body.subarray(at, at + 16_384), last ? 1 : 0, stream))
  }
  return frames
}

function envelope(flags: number, message: Uint8Array): Buffer {
  const head = Buffer.from([flags, 0, 0, 0, 0])
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}
