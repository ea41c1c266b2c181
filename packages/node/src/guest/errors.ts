/** Why a link could not be opened, or ended. */
export type LinkEndKind =
  | 'closed' // by us
  | 'lost' // the byte stream ended or failed
  | 'silent' // no answer to PING
  | 'control_flood'
  | 'headers_too_large'
  | 'frame_too_large'
  | 'server_push'
  | 'protocol_error' // not HTTP/2, or not the agent's protocol

/** Why no link came to be. */
export type LinkOpenFailure =
  | 'connect_failed'
  | 'handshake_timeout'
  | 'garbage' // more bytes before the ECHO than any earlier session could have left
  | 'echo_too_large'
  | 'echo_invalid'
  | 'aborted'

/** How a link ended. `detail` is for the log only: it may hold text of the guest. */
export interface LinkEnd {
  readonly kind: LinkEndKind
  readonly detail: string
}

/** Thrown where a link is opened, waited for or used after its end. */
export class GuestLinkError extends Error {
  override readonly name = 'GuestLinkError'
  readonly kind: LinkEndKind | LinkOpenFailure

  constructor(kind: LinkEndKind | LinkOpenFailure, detail: string, options?: ErrorOptions) {
    super(`guest link: ${kind}: ${detail}`, options)
    this.kind = kind
  }
}

/** A failure that says the link could not be had, as another value than a thrown one. */
export function toLinkError(reason: unknown, otherwise: LinkOpenFailure): GuestLinkError {
  if (reason instanceof GuestLinkError) return reason
  return new GuestLinkError(otherwise, reason instanceof Error ? reason.message : String(reason), {
    cause: reason,
  })
}
