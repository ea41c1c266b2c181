/** What the agent finds in the bytes it reads. */
export type Scanned =
  | { readonly kind: 'data'; readonly bytes: Buffer }
  | { readonly kind: 'hello'; readonly nonce: Buffer }
  | { readonly kind: 'go'; readonly nonce: Buffer }

const nonceBytes = 16

/**
 * Looks for HELLO and GO in everything that comes from the node, inside a session too. Holds back bytes that may be
 * the beginning of a frame until that is decided. The prefix is asked for each time, since a session may change it.
 */
export function createScanner(prefixNow: () => Buffer): (chunk: Buffer) => Scanned[] {
  let held = Buffer.alloc(0)

  return (chunk) => {
    const found: Scanned[] = []
    const prefix = prefixNow()
    const frameBytes = prefix.length + 1 + nonceBytes
    let bytes = Buffer.concat([held, chunk])
    for (;;) {
      const at = bytes.indexOf(prefix)
      const before = at >= 0 ? at : bytes.length - partialPrefix(bytes, prefix)
      if (before > 0) found.push({ kind: 'data', bytes: bytes.subarray(0, before) })
      bytes = bytes.subarray(before)
      const type = bytes[prefix.length]
      if (at < 0 || type === undefined) break
      if (type !== 0x48 && type !== 0x47) {
        found.push({ kind: 'data', bytes: bytes.subarray(0, 1) })
        bytes = bytes.subarray(1)
        continue
      }
      if (bytes.length < frameBytes) break
      const nonce = Buffer.from(bytes.subarray(prefix.length + 1, frameBytes))
      found.push({ kind: type === 0x48 ? 'hello' : 'go', nonce })
      bytes = bytes.subarray(frameBytes)
    }
    held = Buffer.from(bytes)
    return found
  }
}

/** How many bytes at the end of `bytes` are a beginning of the prefix. */
function partialPrefix(bytes: Buffer, prefix: Buffer): number {
  for (let length = Math.min(prefix.length - 1, bytes.length); length > 0; length -= 1)
    if (bytes.subarray(bytes.length - length).equals(prefix.subarray(0, length))) return length
  return 0
}
