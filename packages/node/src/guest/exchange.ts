import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import type { LinkBudgets } from './budgets.ts'
import { GuestLinkError } from './errors.ts'
import {
  createEchoReader,
  createEchoSkipper,
  type EchoSkipper,
  goFrame,
  helloFrame,
  nonceBytes,
} from './handshake.ts'

/** What the handshake left: the stream is paused, and its session begins with `rest`. */
export interface Agreed {
  /** The prefix the agent answered to. */
  readonly prefix: Uint8Array
  /** The bytes of its InfoResponse. */
  readonly hello: Buffer
  readonly rest: Buffer
  readonly skipper: EchoSkipper
}

/**
 * Agrees on a fresh session on a byte stream: HELLO until it is echoed, then GO. With several possible prefixes they
 * take turns. Rejects with a GuestLinkError (`handshake_timeout`, `garbage`, `echo_too_large`, `connect_failed` when
 * the stream ends, `aborted`); the stream is then left to the caller to destroy.
 */
export function agreeOnSession(
  stream: Duplex,
  prefixes: readonly Uint8Array[],
  budgets: LinkBudgets,
  signal?: AbortSignal,
): Promise<Agreed> {
  const nonce = randomBytes(nonceBytes)
  const reader = createEchoReader(prefixes, nonce, budgets.maxDiscardedBytes)
  const hellos = prefixes.map((prefix) => helloFrame(prefix, nonce))
  let sent = 0

  return new Promise((resolve, reject) => {
    const again = setInterval(sendHello, budgets.helloIntervalMs)
    const timeout = setTimeout(
      () => fail(new GuestLinkError('handshake_timeout', `no echo in ${budgets.handshakeTimeoutMs} ms`)),
      budgets.handshakeTimeoutMs,
    )
    stream.on('data', onData)
    stream.on('error', onError)
    stream.on('end', onEnd)
    stream.on('close', onEnd)
    signal?.addEventListener('abort', onAbort)
    if (signal?.aborted === true) onAbort()
    else if (stream.destroyed) onEnd()
    else sendHello()

    // What the guest did not take yet needs no company: a machine that stands still must not fill its socket.
    function sendHello(): void {
      if (stream.writableLength > 0) return
      const hello = hellos[sent % hellos.length]
      if (hello !== undefined) stream.write(hello)
      sent += 1
    }

    function onData(chunk: Buffer): void {
      try {
        const echo = reader.push(chunk)
        if (echo === undefined) return
        stream.pause()
        finish()
        stream.write(goFrame(echo.prefix, nonce))
        const { prefix, body: hello, rest } = echo
        resolve({ prefix, hello, rest, skipper: createEchoSkipper(prefix, nonce) })
      } catch (error) {
        fail(error)
      }
    }

    function onError(error: Error): void {
      fail(new GuestLinkError('connect_failed', error.message, { cause: error }))
    }

    function onEnd(): void {
      fail(new GuestLinkError('connect_failed', 'the stream ended during the handshake'))
    }

    function onAbort(): void {
      fail(new GuestLinkError('aborted', 'given up by its caller', { cause: signal?.reason }))
    }

    function fail(error: unknown): void {
      finish()
      stream.pause()
      reject(error)
    }

    function finish(): void {
      clearInterval(again)
      clearTimeout(timeout)
      stream.off('data', onData)
      stream.off('error', onError)
      stream.off('end', onEnd)
      stream.off('close', onEnd)
      signal?.removeEventListener('abort', onAbort)
    }
  })
}
