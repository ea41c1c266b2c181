/**
 * A place in a process's output: the next byte wanted, and how many of the other events at that byte were had.
 *
 *   record                 position behind it
 *   output [offset, end)   (end, 0)
 *   nth event at offset    (offset, n)
 */
export interface Position {
  /** Counts rollbacks and forks; bytes of two epochs have nothing to do with each other. */
  readonly epoch: number
  readonly offset: number
  readonly n: number
}

/** The epoch of a process that was never rolled back or forked. */
export const firstEpoch = 1

/** Longest id `formatPosition` can give, with room: what is longer is not an id of ours. */
const maxIdLength = 48

/** The `id` of a stream event: `EPOCH.OFFSET.N`. */
export function formatPosition(position: Position): string {
  return `${position.epoch}.${position.offset}.${position.n}`
}

/** Reads `EPOCH.OFFSET.N`, or undefined when it is not one. */
export function parsePosition(id: string): Position | undefined {
  if (id.length > maxIdLength) return undefined
  const match = /^(\d{1,10})\.(\d{1,16})\.(\d{1,10})$/.exec(id)
  if (match === null) return undefined
  const [epoch, offset, n] = [Number(match[1]), Number(match[2]), Number(match[3])]
  return Number.isSafeInteger(offset) ? { epoch, offset, n } : undefined
}

/** Below zero when `a` comes before `b` in the same epoch. */
export function comparePositions(a: Position, b: Position): number {
  return a.offset === b.offset ? a.n - b.n : a.offset - b.offset
}
