import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { Code, ConnectError, type HandlerContext } from '@connectrpc/connect'
import { type AttachRequest, type AttachResponse, AttachResponseSchema } from '@space/contract/guest'
import { exitMessage, type FakeGuest } from './guest.ts'
import type { FakeProcess } from './process.ts'
import { prepareStart } from './start.ts'

const maxOutputBytes = 256 * 1024

type Kind = MessageInitShape<typeof AttachResponseSchema>['kind']

/** How far a stream has told the output. */
interface Cursor {
  sent: number
}

/** The stream that feeds each process: a second one ends the first. */
const owners = new WeakMap<FakeProcess, AbortController>()

/** Starts or joins a process and carries its output until its exit was told or the call ends. */
export async function* attach(
  guest: FakeGuest,
  requests: AsyncIterable<AttachRequest>,
  context: HandlerContext,
): AsyncGenerator<AttachResponse> {
  const iterator = requests[Symbol.asyncIterator]()
  const first = await iterator.next()
  const kind = first.done === true ? undefined : first.value.kind
  if (kind?.case !== 'start' && kind?.case !== 'join')
    throw new ConnectError('the first request is a start or a join', Code.InvalidArgument)
  let process = guest.processes.get(kind.value.processId)
  if (process === undefined) {
    if (kind.case === 'join') throw new ConnectError('no such process', Code.NotFound)
    if (guest.frozen) throw new ConnectError('the workload is frozen', Code.FailedPrecondition)
    const prepared = prepareStart(kind.value, guest.environment)
    if ('reason' in prepared) {
      yield response({ case: 'startFailed', value: prepared })
      return
    }
    process = guest.start(prepared)
  }
  const own = new AbortController()
  owners.get(process)?.abort(new ConnectError('another stream has joined', Code.Aborted))
  owners.set(process, own)
  const from = kind.case === 'join' ? Number(kind.value.fromOffset) : 0
  if (from < 0 || from > process.output.nextOffset)
    throw new ConnectError('the offset is beyond the output', Code.OutOfRange)
  process.output.acknowledge(from)
  process.change.announce()
  const cursor = { sent: process.output.acknowledged }
  void readRequests(process, iterator, own, cursor)
  yield* follow(process, AbortSignal.any([own.signal, context.signal]), cursor)
}

async function* follow(
  process: FakeProcess,
  signal: AbortSignal,
  cursor: Cursor,
): AsyncGenerator<AttachResponse> {
  const { output, stdin, change } = process
  let toldStdin = 0
  yield response({
    case: 'started',
    value: {
      pid: process.pid,
      startedAtUnixMs: BigInt(process.startedAtUnixMs),
      acknowledgedOffset: BigInt(cursor.sent),
    },
  })
  for (;;) {
    await change.until(
      () => output.nextOffset > cursor.sent || stdin.nextOffset > toldStdin || process.exit !== undefined,
      signal,
    )
    if (stdin.nextOffset > toldStdin) {
      toldStdin = stdin.nextOffset
      yield response({ case: 'stdinState', value: { nextOffset: BigInt(toldStdin) } })
    }
    const chunk = output.at(cursor.sent, maxOutputBytes)
    if (chunk !== undefined && output.nextOffset > cursor.sent) {
      cursor.sent = chunk.offset + chunk.bytes.length
      yield response({
        case: 'output',
        value: { stream: chunk.stream, offset: BigInt(chunk.offset), data: chunk.bytes },
      })
    } else if (process.exit !== undefined) {
      yield response({ case: 'exited', value: exitMessage(process.exit) })
      return
    }
  }
}

async function readRequests(
  process: FakeProcess,
  requests: AsyncIterator<AttachRequest>,
  own: AbortController,
  cursor: Cursor,
): Promise<void> {
  try {
    for (let next = await requests.next(); next.done !== true; next = await requests.next()) {
      if (own.signal.aborted) return
      handle(process, next.value, cursor)
      process.change.announce()
    }
  } catch (error) {
    own.abort(ConnectError.from(error))
  }
}

function handle(process: FakeProcess, { kind }: AttachRequest, cursor: Cursor): void {
  switch (kind.case) {
    case 'ack':
      if (Number(kind.value.offset) > cursor.sent)
        throw new ConnectError('the offset is beyond the output', Code.OutOfRange)
      process.output.acknowledge(Number(kind.value.offset))
      return
    case 'resize':
      if (process.spec.terminal === undefined)
        throw new ConnectError('the process has no terminal', Code.InvalidArgument)
      process.resize(kind.value.cols, kind.value.rows)
      return
    case 'stdin':
    case 'stdinClose':
      giveStdin(process, kind)
      return
    default:
      throw new ConnectError('a request of no known kind', Code.InvalidArgument)
  }
}

function giveStdin(
  { spec, stdin, exit }: FakeProcess,
  kind: Extract<AttachRequest['kind'], { case: 'stdin' | 'stdinClose' }>,
): void {
  if (!spec.stdinPipe && spec.terminal === undefined)
    throw new ConnectError('stdin is /dev/null', Code.InvalidArgument)
  if (exit !== undefined) return
  const offset = Number(kind.value.offset)
  const taken = kind.case === 'stdin' ? stdin.put(offset, kind.value.data) : stdin.close(offset)
  if (taken === 'gap') throw new ConnectError('stdin has a gap', Code.FailedPrecondition)
  if (taken === 'full') throw new ConnectError('too much stdin in advance', Code.ResourceExhausted)
}

function response(kind: Kind): AttachResponse {
  return create(AttachResponseSchema, kind === undefined ? {} : { kind })
}
