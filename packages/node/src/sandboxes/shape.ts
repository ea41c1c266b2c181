/** Shapes are a short list: a request is rounded up to one, and the sandbox shows what it got. */
import { PublicError } from '@space/contract'
import type { Shape } from '../machines/machine.ts'

export const shapeVcpus: readonly number[] = [1, 2, 4]
export const shapeMemoryMib: readonly number[] = [256, 512, 1024, 2048, 4096]

/** The smallest shape that holds what is asked for; throws `invalid_request` when none does. */
export function roundShape(wanted: Shape): Shape {
  return {
    vcpus: roundUp(wanted.vcpus, shapeVcpus, 'resources.vcpus'),
    memoryMib: roundUp(wanted.memoryMib, shapeMemoryMib, 'resources.memory_mib'),
  }
}

function roundUp(wanted: number, offered: readonly number[], field: string): number {
  const found = offered.find((size) => size >= wanted)
  if (found !== undefined) return found
  const most = offered.at(-1) ?? 0
  const message = `${field} is ${wanted}, this node offers at most ${most}: ask for less.`
  throw new PublicError('invalid_request', message, {
    details: { field, limit: most, reason: 'shape_too_large' },
  })
}
