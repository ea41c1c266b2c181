/** The few messages of `proto/guest/v1` the floor speaks, written by hand over `protobuf.ts`. */
import { bytesField, type Field, fieldsOf, varintField } from './protobuf.ts'

export type AttachEvent =
  | { readonly kind: 'started' }
  | { readonly kind: 'failed'; readonly errno: string }
  | { readonly kind: 'output'; readonly offset: number; readonly data: Buffer }
  | {
      readonly kind: 'exited'
      readonly exitCode: number
      readonly signal: number
      readonly finalOffset: number
    }
  | { readonly kind: 'other' }

/** `AttachRequest{start}`: a program as root in `/`, stdin `/dev/null`. */
export function startRequest(processId: string, argv: readonly string[]): Buffer {
  const start = [
    bytesField(1, processId),
    ...argv.map((argument) => bytesField(2, argument)),
    bytesField(4, '/'),
    bytesField(5, 'root'),
  ]
  return bytesField(1, Buffer.concat(start))
}

/** `AttachRequest{ack}`: every byte below `offset` has been taken. */
export function ackRequest(offset: number): Buffer {
  return bytesField(3, varintField(1, offset))
}

/** `ForgetRequest`. */
export function forgetRequest(processIds: readonly string[]): Buffer {
  return Buffer.concat(processIds.map((id) => bytesField(1, id)))
}

/** One `AttachResponse`. */
export function readAttachResponse(message: Buffer): AttachEvent {
  for (const { number, value } of fieldsOf(message)) {
    if (typeof value === 'number') continue
    if (number === 1) return { kind: 'started' }
    if (number === 2) return { kind: 'failed', errno: text(fieldsOf(value), 2) }
    if (number === 3) return readOutput(value)
    if (number === 4) {
      const exit = numbers(value)
      return {
        kind: 'exited',
        exitCode: exit.get(1) ?? 0,
        signal: exit.get(2) ?? 0,
        finalOffset: exit.get(5) ?? 0,
      }
    }
  }
  return { kind: 'other' }
}

/** `UsageResponse.agent_resident_bytes`. */
export function readAgentResidentBytes(message: Buffer): number {
  return numbers(message).get(7) ?? 0
}

/** Agent build and kernel of an `InfoResponse`. */
export function readInfo(message: Buffer): { agentBuild: string; kernelRelease: string } {
  return { agentBuild: text(fieldsOf(message), 2), kernelRelease: text(fieldsOf(message), 4) }
}

function readOutput(message: Buffer): AttachEvent {
  let offset = 0
  let data: Buffer = Buffer.alloc(0)
  for (const { number, value } of fieldsOf(message)) {
    if (number === 2 && typeof value === 'number') offset = value
    if (number === 3 && typeof value !== 'number') data = value
  }
  return { kind: 'output', offset, data }
}

function numbers(message: Buffer): Map<number, number> {
  const found = new Map<number, number>()
  for (const { number, value } of fieldsOf(message)) if (typeof value === 'number') found.set(number, value)
  return found
}

function text(fields: Iterable<Field>, wanted: number): string {
  for (const { number, value } of fields)
    if (number === wanted && typeof value !== 'number') return value.toString()
  return ''
}
