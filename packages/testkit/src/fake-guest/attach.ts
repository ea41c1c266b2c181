import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { Code, ConnectError, type HandlerContext } from '@connectrpc/connect'
import { type AttachRequest, type AttachResponse, AttachResponseSchema } from '@space/contract/guest'
import { exitMessage, type FakeGuest } from './guest.ts'
import type { FakeProcess } from './process.ts'
import { prepareStart } from './start.ts'

const maxOutputBytes = 256 * 1024

type Kind = MessageInitShape<typeof AttachResponseSchema>['kind']

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
    const prepared = prepareStart(kind.value, guest.environment)
    if ('reason' in prepared) {
      yield response({ case: 'startFailed', value: prepared })
      return
    }
    process = guest.start(prepared)
  }
  const own = new AbortController()
  owners.get(process)?.abort(new ConnectError('joined elsewhere', Code.Aborted))
  owners.set(process, own)
  const from = kind.case === 'join' ? Number(kind.value.fromOffset) : 0
  if (from > process.output.nextOffset)
    throw new ConnectError('that byte was not printed yet', Code.FailedPrecondition)
  process.output.acknowledge(from)
  process.change.announce()
  void readRequests(process, iterator, own)
  yield* follow(process, AbortSignal.any([own.signal, context.signal]))
}

async function* follow(process: FakeProcess, signal: AbortSignal): AsyncGenerator<AttachResponse> {
  const { output, stdin, change } = process
  let sent = output.acknowledged
  let toldStdin = 0
  yield response({
    case: 'started',
    value: {
      pid: process.pid,
      startedAtUnixMs: BigInt(process.startedAtUnixMs),
      acknowledgedOffset: BigInt(sent),
    },
  })
  for (;;) {
    await change.until(
      () => output.nextOffset > sent || stdin.nextOffset > toldStdin || process.exit !== undefined,
      signal,
    )
    if (stdin.nextOffset > toldStdin) {
      toldStdin = stdin.nextOffset
      yield response({ case: 'stdinState', value: { nextOffset: BigInt(toldStdin) } })
    }
    const chunk = output.at(sent, maxOutputBytes)
    if (chunk !== undefined && output.nextOffset > sent) {
      sent = chunk.offset + chunk.bytes.length
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
): Promise<void> {
  try {
    for (let next = await requests.next(); next.done !== true; next = await requests.next()) {
      if (own.signal.aborted) return
      if (!handle(process, next.value)) {
        own.abort(new ConnectError('a gap in stdin', Code.FailedPrecondition))
        return
      }
      process.change.announce()
    }
  } catch (error) {
    own.abort(ConnectError.from(error))
  }
}

/** False for a request that cannot be: a gap in stdin. */
function handle(process: FakeProcess, { kind }: AttachRequest): boolean {
  if (kind.case === 'ack') process.output.acknowledge(Number(kind.value.offset))
  else if (kind.case === 'resize') process.resize(kind.value.cols, kind.value.rows)
  else if (kind.case === 'stdinClose') return process.stdin.close(Number(kind.value.offset))
  else if (kind.case === 'stdin') {
    if (process.exit === undefined) return process.stdin.put(Number(kind.value.offset), kind.value.data)
  }
  return true
}

function response(kind: Kind): AttachResponse {
  return create(AttachResponseSchema, kind === undefined ? {} : { kind })
}
