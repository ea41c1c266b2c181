/**
 * What one guest may cost its node through the guest channel. A guest is untrusted: every queue, buffer, frame rate and
 * wait on the host side of the channel has its number here, with what happens at the limit.
 */
export interface LinkBudgets {
  /** How often HELLO is sent until it is echoed. */
  readonly helloIntervalMs: number
  /** No ECHO within this time: the attempt fails with `handshake_timeout`. */
  readonly handshakeTimeoutMs: number
  /** Bytes of an earlier session read away before the ECHO; more fails the attempt with `garbage`. */
  readonly maxDiscardedBytes: number
  /** Largest protobuf message either way; a larger one fails its call with `resource_exhausted`. */
  readonly maxMessageBytes: number
  /** Largest header block of a response, compressed; a larger one closes the link with `headers_too_large`. */
  readonly maxHeaderBytes: number
  /** Largest HTTP/2 frame accepted; a larger one closes the link with `frame_too_large`. */
  readonly maxFrameBytes: number
  /** How far a stream nobody reads may run ahead; then the agent waits. */
  readonly streamWindowBytes: number
  /** Window of the whole connection; returned on receipt, so it bounds the speed and not the memory. */
  readonly connectionWindowBytes: number
  /** Bytes taken from the guest a second, over a burst; above it the socket is paused. */
  readonly maxBytesPerSecond: number
  readonly burstBytes: number
  /** What a frame counts at least in the byte budget, so that many small ones cost what they take to handle. */
  readonly minFrameCostBytes: number
  /** Frames that carry no data, a second and as a burst; above it the link is closed with `control_flood`. */
  readonly controlFramesPerSecond: number
  readonly controlFrameBurst: number
  /** Our own bytes earn the guest one control frame each so many: it must answer what we send. */
  readonly sentBytesPerControlFrame: number
  /** A PING is sent this often, and one unanswered for `pingTimeoutMs` closes the link with `silent`. */
  readonly pingIntervalMs: number
  readonly pingTimeoutMs: number
  /** A unary call without an answer fails with `deadline_exceeded`. */
  readonly unaryTimeoutMs: number
}

const kib = 1024
const mib = 1024 * kib

/** The budgets of every link unless its caller asks for others. */
export const defaultLinkBudgets: LinkBudgets = {
  helloIntervalMs: 50,
  handshakeTimeoutMs: 15_000,
  maxDiscardedBytes: 64 * mib,
  maxMessageBytes: mib,
  maxHeaderBytes: 16 * kib,
  maxFrameBytes: 256 * kib,
  streamWindowBytes: mib,
  connectionWindowBytes: 16 * mib,
  maxBytesPerSecond: 256 * mib,
  burstBytes: 32 * mib,
  minFrameCostBytes: 4 * kib,
  controlFramesPerSecond: 1_000,
  controlFrameBurst: 10_000,
  sentBytesPerControlFrame: 64,
  pingIntervalMs: 10_000,
  pingTimeoutMs: 30_000,
  unaryTimeoutMs: 30_000,
}
