/** Every named schema of the contract; a server adds all of them, so that references resolve. */
import type { TSchema } from 'typebox'
import * as account from './account.ts'
import * as dataPlane from './data-plane.ts'
import * as error from './error.ts'
import * as operation from './operation.ts'
import * as process from './process.ts'
import * as sandbox from './sandbox.ts'
import * as service from './service.ts'
import * as stream from './stream.ts'
import * as template from './template.ts'

export * from './account.ts'
export * from './data-plane.ts'
export * from './error.ts'
export * from './operation.ts'
export { ref } from './parts.ts'
export * from './process.ts'
export * from './sandbox.ts'
export * from './service.ts'
export * from './stream.ts'
export * from './template.ts'

/** All schemas that carry a name, in no particular order. */
export const components: readonly TSchema[] = [
  ...[account, dataPlane, error, operation, process, sandbox, service, stream, template].flatMap((file) =>
    Object.values(file).filter(isNamed),
  ),
]

function isNamed(value: unknown): value is TSchema {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, '$id')
}
