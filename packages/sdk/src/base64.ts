import { clientError } from './errors.ts'

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
// One entry for every UTF-16 unit, so that the loop below needs no bounds check of its own; -1 marks what is no digit.
const digitOf = new Int8Array(0x10000).fill(-1)
for (let value = 0; value < alphabet.length; value++) digitOf[alphabet.charCodeAt(value)] = value

/** Decodes standard base64 with padding. By table, since browsers and Node.js 24 have no fast decoder in common. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  if (text.length % 4 !== 0) throw malformed()
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  const bytes = new Uint8Array((text.length / 4) * 3 - padding)
  const whole = padding === 0 ? text.length : text.length - 4
  let at = 0
  let seen = 0
  for (let index = 0; index < whole; index += 4) {
    const bits =
      (digit(text, index) << 18) |
      (digit(text, index + 1) << 12) |
      (digit(text, index + 2) << 6) |
      digit(text, index + 3)
    seen |= bits
    bytes[at++] = bits >> 16
    bytes[at++] = bits >> 8
    bytes[at++] = bits
  }
  if (padding > 0) {
    const third = padding === 1 ? digit(text, whole + 2) : 0
    const bits = (digit(text, whole) << 18) | (digit(text, whole + 1) << 12) | (third << 6)
    seen |= bits
    bytes[at++] = bits >> 16
    if (padding === 1) bytes[at] = bits >> 8
  }
  if (seen < 0) throw malformed()
  return bytes
}

// -1 shifted by at most 18 bits stays negative, so one bad digit makes the whole of `seen` negative.
function digit(text: string, index: number): number {
  return digitOf[text.charCodeAt(index)] ?? -1
}

function malformed() {
  return clientError('protocol_error', 'the stream held text that is not base64', false)
}
