/**
 * One session with the agent in a microVM.
 *
 *   connect → handshake (exchange.ts) → [new secret] → GuestLink: client() calls until it ends, then for ever ended
 *
 * A link never comes back: `session.ts` opens the next one. Everything the guest sends is held to `budgets.ts`.
 */

import type { Duplex } from 'node:stream'
import { fromBinary } from '@bufbuild/protobuf'
import { type Client, createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { GuestService, type InfoResponse, InfoResponseSchema } from '@space/contract/guest'
import { defaultLinkBudgets, type LinkBudgets } from './budgets.ts'
import { ChannelStream } from './channel-stream.ts'
import { GuestLinkError, type LinkEnd, toLinkError } from './errors.ts'
import { agreeOnSession } from './exchange.ts'
import { guestAuthority, type Http2Link, startHttp2 } from './http2-link.ts'
import { isBootPrefix, type LinkSecretStore, possiblePrefixes, rotateSecret } from './secrets.ts'
import { unaryDeadline } from './unary-deadline.ts'

export interface GuestLink {
  /** What the agent said of itself when this session began: versions, boot id, table of processes. */
  readonly hello: InfoResponse
  readonly client: Client<typeof GuestService>
  /** Set the moment this link can no longer carry a call. */
  readonly ended: LinkEnd | undefined
  /** Resolves once, when the link is over. Never rejects. */
  readonly closed: Promise<LinkEnd>
  /** Gives the agent a new secret for the next handshake: after a restore from a snapshot others share. */
  rotateSecret(): Promise<void>
  /** Ends the session and its byte stream; calls in flight fail. Idempotent. */
  close(): Promise<LinkEnd>
}

export interface GuestLinkOptions {
  /** A new byte stream to the agent, e.g. `machine.guest`. */
  readonly connect: (signal?: AbortSignal) => Promise<Duplex>
  readonly secrets: LinkSecretStore
  readonly budgets?: Partial<LinkBudgets>
  readonly signal?: AbortSignal
}

/** Most processes one agent may have in its table. */
const maxProcesses = 4_096

/**
 * Opens a session with the agent. An agent that still answers to the boot prefix, or about whose secret there was
 * doubt, has a settled secret before this resolves. Rejects with a GuestLinkError that says which step failed.
 */
export async function openGuestLink(options: GuestLinkOptions): Promise<GuestLink> {
  const budgets = { ...defaultLinkBudgets, ...options.budgets }
  const secrets = await options.secrets.read()
  const stream = await connect(options)
  stream.on('error', () => {
    // Who uses the stream listens too; what happens to one nobody uses any more is no news.
  })
  try {
    const agreed = await agreeOnSession(stream, possiblePrefixes(secrets), budgets, options.signal)
    const hello = parseHello(agreed.hello)
    const channel = new ChannelStream(stream, agreed.skipper, budgets)
    const link = startHttp2(channel, budgets)
    channel.begin(agreed.rest)
    const opened = guestLink(link, hello, agreed.prefix, options.secrets, budgets)
    if (isBootPrefix(agreed.prefix) || secrets.candidate !== undefined) await settle(opened, options.signal)
    return opened
  } catch (error) {
    stream.destroy()
    throw toLinkError(error, 'connect_failed')
  }
}

async function connect(options: GuestLinkOptions): Promise<Duplex> {
  try {
    return await options.connect(options.signal)
  } catch (error) {
    throw toLinkError(error, options.signal?.aborted === true ? 'aborted' : 'connect_failed')
  }
}

function parseHello(bytes: Buffer): InfoResponse {
  try {
    const hello = fromBinary(InfoResponseSchema, bytes, { readUnknownFields: false })
    if (hello.protocolVersion < 1)
      throw new GuestLinkError('echo_invalid', `protocol ${hello.protocolVersion}`)
    if (hello.processes.length > maxProcesses)
      throw new GuestLinkError('echo_invalid', `${hello.processes.length} processes`)
    return hello
  } catch (error) {
    throw toLinkError(error, 'echo_invalid')
  }
}

function guestLink(
  link: Http2Link,
  hello: InfoResponse,
  prefix: Uint8Array,
  secrets: LinkSecretStore,
  budgets: LinkBudgets,
): GuestLink {
  const transport = createConnectTransport({
    httpVersion: '2',
    baseUrl: guestAuthority,
    sessionManager: link,
    acceptCompression: [],
    readMaxBytes: budgets.maxMessageBytes,
    writeMaxBytes: budgets.maxMessageBytes,
    interceptors: [unaryDeadline(budgets.unaryTimeoutMs)],
  })
  const client = createClient(GuestService, transport)
  let current = prefix
  let rotating: Promise<unknown> = Promise.resolve()
  return {
    hello,
    client,
    get ended() {
      return link.ended
    },
    closed: link.closed,
    rotateSecret() {
      const turn = rotating.then(async () => {
        current = await rotateSecret(secrets, current, (next) => client.setLinkSecret({ prefix: next }))
      })
      rotating = turn.catch(() => 'told to who asked')
      return turn
    },
    close() {
      link.close({ kind: 'closed', detail: 'by the node' })
      return link.closed
    },
  }
}

async function settle(link: GuestLink, signal?: AbortSignal): Promise<void> {
  const abort = () => void link.close()
  signal?.addEventListener('abort', abort)
  try {
    if (signal?.aborted === true) abort()
    await link.rotateSecret()
  } catch (error) {
    const end = await link.close()
    throw new GuestLinkError(end.kind, `while giving the secret: ${String(error)}`, { cause: error })
  } finally {
    signal?.removeEventListener('abort', abort)
  }
}
