import type { Client } from '@connectrpc/connect'
import {
  type AttachResponse,
  type Exit,
  type GuestService,
  Output_Stream,
  type StartFailed,
} from '@space/contract/guest'
import { type AttachFirst, attachRequests } from '@space/node/guest'

/** What a command of a guest left, read to its end. */
export interface CommandResult {
  readonly pid: number
  /** Offset of the first byte read. */
  readonly firstOffset: bigint
  readonly output: Buffer
  readonly stdout: Buffer
  readonly stderr: Buffer
  readonly exit: Exit | undefined
  readonly startFailed: StartFailed | undefined
}

type GuestClient = Client<typeof GuestService>

/** Runs a program in a guest, with stdin when given, acknowledging every byte. */
export async function runCommand(
  client: GuestClient,
  processId: string,
  argv: readonly string[],
  options: { readonly stdin?: string; readonly user?: string; readonly env?: Record<string, string> } = {},
): Promise<CommandResult> {
  const { stdin, user = '', env = {} } = options
  const start = { processId, argv: [...argv], user, env, stdinPipe: stdin !== undefined }
  return follow(client, { case: 'start', value: start }, stdin)
}

/** Joins a process and reads it from an offset to its exit, acknowledging every byte. */
export function joinCommand(
  client: GuestClient,
  processId: string,
  fromOffset: bigint,
): Promise<CommandResult> {
  return follow(client, { case: 'join', value: { processId, fromOffset } })
}

/** Begins a command and leaves it alone: resolves once it runs. */
export async function startCommand(
  client: GuestClient,
  processId: string,
  argv: readonly string[],
  options: { readonly stdinPipe?: boolean } = {},
): Promise<void> {
  const requests = attachRequests({ case: 'start', value: { processId, argv: [...argv], ...options } })
  const abort = new AbortController()
  try {
    for await (const { kind } of client.attach(requests, { signal: abort.signal })) {
      if (kind.case === 'started') return
      throw new TypeError(`${argv.join(' ')} did not start: ${kind.case}`)
    }
  } finally {
    requests.end()
    abort.abort()
  }
}

async function follow(client: GuestClient, first: AttachFirst, stdin?: string): Promise<CommandResult> {
  const requests = attachRequests(first)
  if (stdin !== undefined) {
    const bytes = Buffer.from(stdin)
    void requests.stdin(0n, bytes)
    void requests.stdinClose(BigInt(bytes.length))
  }
  const responses: AttachResponse['kind'][] = []
  try {
    for await (const { kind } of client.attach(requests)) {
      responses.push(kind)
      if (kind.case === 'output') requests.ack(kind.value.offset + BigInt(kind.value.data.length))
    }
  } finally {
    requests.end()
  }
  return gather(responses)
}

function gather(responses: readonly AttachResponse['kind'][]): CommandResult {
  const outputs = responses.flatMap((kind) => (kind.case === 'output' ? [kind.value] : []))
  const of = (...streams: readonly number[]) =>
    Buffer.concat(outputs.filter(({ stream }) => streams.includes(stream)).map(({ data }) => data))
  const started = responses.find((kind) => kind.case === 'started')
  return {
    pid: started?.value.pid ?? 0,
    firstOffset: outputs[0]?.offset ?? 0n,
    output: Buffer.concat(outputs.map(({ data }) => data)),
    stdout: of(Output_Stream.STDOUT, Output_Stream.PTY),
    stderr: of(Output_Stream.STDERR),
    exit: responses.find((kind) => kind.case === 'exited')?.value,
    startFailed: responses.find((kind) => kind.case === 'startFailed')?.value,
  }
}
