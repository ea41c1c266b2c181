import { MachineError } from '../machine-error.ts'

/** Longest line a VMM may send. The longest honest one, an answer about block nodes, has some tens of kilobytes. */
export const maxLineBytes = 1 << 20

export type QmpMessage =
  | { readonly kind: 'greeting'; readonly version: string }
  | { readonly kind: 'return'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'error'; readonly id: number; readonly errorClass: string; readonly description: string }
  | { readonly kind: 'event'; readonly name: string; readonly data: Record<string, unknown> }

/** Cuts a byte stream into lines and parses each; a VMM that breaks the bounds gets a `vmm_protocol` error. */
export class QmpLines {
  #parts: Buffer[] = []
  #pendingBytes = 0

  /** The messages completed by these bytes, in order. */
  push(chunk: Buffer): QmpMessage[] {
    const messages: QmpMessage[] = []
    let rest = chunk
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      this.#keep(rest.subarray(0, end))
      const line = Buffer.concat(this.#parts).toString('utf8').trim()
      this.#parts = []
      this.#pendingBytes = 0
      if (line !== '') messages.push(parseMessage(line))
      rest = rest.subarray(end + 1)
    }
    this.#keep(rest)
    return messages
  }

  #keep(bytes: Buffer): void {
    if (bytes.length === 0) return
    this.#pendingBytes += bytes.length
    if (this.#pendingBytes > maxLineBytes)
      throw new MachineError('vmm_protocol', 'a QMP line is longer than 1 MiB')
    this.#parts.push(bytes)
  }
}

/** Parses one QMP line. */
export function parseMessage(line: string): QmpMessage {
  const message = record(parseJson(line))
  if (typeof message['event'] === 'string')
    return { kind: 'event', name: message['event'], data: record(message['data'] ?? {}) }
  if ('QMP' in message) return { kind: 'greeting', version: versionOf(message['QMP']) }
  const id = message['id']
  const error = record(message['error'] ?? {})
  if (typeof id !== 'number')
    throw new MachineError('vmm_protocol', `a QMP answer without an id: ${text(error['desc'])}`)
  if ('return' in message) return { kind: 'return', id, value: message['return'] }
  return { kind: 'error', id, errorClass: text(error['class']), description: text(error['desc']) }
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch (cause) {
    throw new MachineError('vmm_protocol', 'a QMP line is not JSON', { cause })
  }
}

function versionOf(value: unknown): string {
  const qemu = record(record(record(value)['version'] ?? {})['qemu'] ?? {})
  return [qemu['major'], qemu['minor'], qemu['micro']].map(Number).join('.')
}

/** The value as an object, or a `vmm_protocol` error. */
export function record(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new MachineError('vmm_protocol', 'a QMP value is not an object')
  return value as Record<string, unknown>
}

function text(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, 1024) : ''
}
