/**
 * Control and node in one process, connected by the same generated clients as over a network: each calls the other
 * through its contract, in memory. Each needs the other's client to be made, so a service is looked up when it is
 * called.
 */

import type { DescService } from '@bufbuild/protobuf'
import { type Client, createClient, createRouterTransport, type ServiceImpl } from '@connectrpc/connect'

/** A client of a service in this process; `implementation` is asked for at each call. */
export function memoryClient<S extends DescService>(
  service: S,
  implementation: () => ServiceImpl<S>,
): Client<S> {
  const methods = service.methods.map(({ localName }) => {
    const call = (...args: unknown[]) => {
      const target: Record<string, unknown> = implementation()
      const method = target[localName]
      if (typeof method !== 'function') throw new TypeError(`${service.typeName} has no ${localName} here`)
      return method.apply(target, args)
    }
    return [localName, call]
  })
  const late = Object.fromEntries(methods) as ServiceImpl<S>
  return createClient(
    service,
    createRouterTransport((router) => router.service(service, late)),
  )
}
