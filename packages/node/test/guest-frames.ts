/** Numbers of HTTP/2's frame types. */
export const frameTypes = {
  data: 0,
  headers: 1,
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
