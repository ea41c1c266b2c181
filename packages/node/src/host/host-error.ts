import { constants } from 'node:os'

const errnoNames = new Map<number, string>(
  Object.entries(constants.errno).map(([name, value]) => [value, name]),
)

/** The kernel's name of an error number, e.g. 2 → `ENOENT`; `errno 523` for one that has no name here. */
export function errnoName(errno: number): string {
  return errnoNames.get(errno) ?? `errno ${errno}`
}

/** A request to the kernel or to a host program failed. For logs: it names host paths and is never shown to a client. */
export class HostError extends Error {
  readonly operation: string
  /** Name of the errno, e.g. `EPERM`, or a word for failures that have none, e.g. `timeout`. */
  readonly code: string

  constructor(operation: string, code: string, detail = '') {
    super(detail === '' ? `${operation}: ${code}` : `${operation}: ${code}: ${detail}`)
    this.name = 'HostError'
    this.operation = operation
    this.code = code
  }
}

/** The `code` of an error that Node.js or this package threw, or undefined. */
export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}
