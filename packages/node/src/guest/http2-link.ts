import http2 from 'node:http2'
import { Code, ConnectError } from '@connectrpc/connect'
import type { LinkBudgets } from './budgets.ts'
import type { ChannelStream } from './channel-stream.ts'
import { GuestLinkError, type LinkEnd } from './errors.ts'
import { responseBytes } from './response-bytes.ts'

/** One HTTP/2 session on one byte stream: when it is over it stays over, a new link is somebody else's decision. */
export interface Http2Link {
  readonly authority: string
  /** Begins a call; rejects with `unavailable` after the end. */
  request(
    method: string,
    path: string,
    headers: http2.OutgoingHttpHeaders,
    options: Omit<http2.ClientSessionRequestOptions, 'signal'>,
  ): Promise<http2.ClientHttp2Stream>
  /** The transport tells of bytes it read; liveness is known from PING here. */
  notifyResponseByteRead(stream: http2.ClientHttp2Stream): void
  /** Set the moment the session can no longer carry a call. */
  readonly ended: LinkEnd | undefined
  readonly closed: Promise<LinkEnd>
  /** Ends the session and the stream under it. Idempotent. */
  close(end: LinkEnd): void
}

/** The authority calls are addressed to: no name is ever resolved, the stream is the peer. */
export const guestAuthority = 'http://agent.invalid'

/** Speaks HTTP/2 as the client on a stream the handshake is over on. */
export function startHttp2(stream: ChannelStream, budgets: LinkBudgets): Http2Link {
  const closed = Promise.withResolvers<LinkEnd>()
  let ended: LinkEnd | undefined
  let unansweredSinceMs: number | undefined

  const session = http2.connect(guestAuthority, {
    createConnection: () => stream,
    maxReservedRemoteStreams: 0,
    maxSettings: 32,
    maxOutstandingPings: 2,
    maxSessionMemory: 64,
    peerMaxConcurrentStreams: 100,
    settings: {
      enablePush: false,
      initialWindowSize: budgets.streamWindowBytes,
      maxFrameSize: budgets.maxFrameBytes,
      maxHeaderListSize: budgets.maxHeaderBytes,
    },
  })
  session.setLocalWindowSize(budgets.connectionWindowBytes)
  session.on('error', (error) => close(endOf(error)))
  session.on('goaway', (code) => close({ kind: 'lost', detail: `the agent ended the session: code ${code}` }))
  stream.on('error', (error) => close(endOf(error)))
  // HTTP/2 ends a session that breaks its rules without an error: then the stream closes, and not from the other end.
  stream.on('close', () =>
    close({ kind: stream.peerGone ? 'lost' : 'protocol_error', detail: 'the stream closed' }),
  )
  const pinging = setInterval(ping, budgets.pingIntervalMs)
  pinging.unref()

  return {
    authority: guestAuthority,
    get ended() {
      return ended
    },
    closed: closed.promise,
    close,
    async request(method, path, headers, options) {
      if (ended === undefined && (session.destroyed || session.closed))
        close({ kind: 'lost', detail: 'the session closed' })
      if (ended !== undefined) throw new ConnectError(`guest link: ${ended.kind}`, Code.Unavailable)
      const stream = session.request({ ...headers, ':method': method, ':path': path }, options)
      Object.defineProperty(stream, Symbol.asyncIterator, { value: () => responseBytes(stream) })
      return stream
    },
    notifyResponseByteRead() {
      // PING tells.
    },
  }

  function close(end: LinkEnd): void {
    if (ended !== undefined) return
    ended = end
    clearInterval(pinging)
    // Both: a session on a stream that is stuck in a write is not over before the stream is gone.
    session.destroy()
    stream.destroy()
    closed.resolve(end)
  }

  function ping(): void {
    const nowMs = performance.now()
    if (unansweredSinceMs !== undefined) {
      if (nowMs - unansweredSinceMs >= budgets.pingTimeoutMs)
        close({ kind: 'silent', detail: `no answer to a ping in ${budgets.pingTimeoutMs} ms` })
      return
    }
    if (session.destroyed) return
    unansweredSinceMs = nowMs
    session.ping((error) => {
      if (error === null) unansweredSinceMs = undefined
    })
  }
}

function endOf(error: Error): LinkEnd {
  if (error instanceof GuestLinkError && isEndKind(error.kind))
    return { kind: error.kind, detail: error.message }
  const code = 'code' in error ? String(error.code) : ''
  const kind = code.startsWith('ERR_HTTP2') || code.startsWith('ERR_INTERNAL') ? 'protocol_error' : 'lost'
  return { kind, detail: `${code} ${error.message}` }
}

function isEndKind(kind: GuestLinkError['kind']): kind is LinkEnd['kind'] {
  const kinds: readonly string[] = ['control_flood', 'headers_too_large', 'frame_too_large', 'server_push']
  return kind === 'protocol_error' || kinds.includes(kind)
}
