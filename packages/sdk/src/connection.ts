import type { Transport } from './transport.ts'

/** What every part of the client calls through. */
export interface Connection {
  readonly apiUrl: string
  readonly transport: Transport
  /** Where the bytes of a sandbox are: asked of the API once, unless the client was told. */
  dataPlaneUrl(sandboxId: string, signal?: AbortSignal): Promise<string>
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined
}
