/** A command to its end: its input given, its output gathered up to a limit, its exit. */
import { isUtf8 } from 'node:buffer'
import { type ExecAnswer, type ProcessExitedEvent, PublicError } from '@space/contract'
import { SignalRequest_Scope } from '@space/contract/guest'
import { type Journal, readJournal } from '../journal/index.ts'
import type { Processes } from './processes.ts'

export interface ExecOptions {
  readonly sandboxId: string
  readonly processId: string
  readonly input: Uint8Array | undefined
  /** Of each stream; what comes behind is dropped. */
  readonly outputLimitBytes: number
  /** Nobody can ask for the result of this one again. */
  readonly killWhenGone: boolean
  /** The caller is gone. */
  readonly signal: AbortSignal
}

const sigkill = 9

/** Resolves with how it ended and what it printed. */
export async function exec(
  processes: Processes,
  journal: Journal,
  options: ExecOptions,
): Promise<ExecAnswer> {
  const { sandboxId, processId, signal } = options
  try {
    const input = options.input === undefined ? undefined : give(processes, options, options.input)
    const result = await gather(journal, options)
    await input
    return { process_id: processId, ...result }
  } catch (error) {
    if (signal.aborted && options.killWhenGone)
      await processes.signal(sandboxId, processId, sigkill, SignalRequest_Scope.TREE)
    throw error
  }
}

/** Writes all of the input and closes stdin. A program that does not read it is no failure. */
async function give(
  processes: Processes,
  { sandboxId, processId, signal }: ExecOptions,
  input: Uint8Array,
): Promise<void> {
  try {
    const stdin = await processes.stdin(sandboxId, processId)
    await stdin.write(0, oneChunk(input), signal)
    await stdin.close(signal)
  } catch (error) {
    if (!(error instanceof PublicError && error.code === 'failed_precondition') && !signal.aborted)
      throw error
  }
}

async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

type Result = Omit<ExecAnswer, 'process_id'>

async function gather(journal: Journal, { outputLimitBytes, signal }: ExecOptions): Promise<Result> {
  const stdout = new Gathered(outputLimitBytes)
  const stderr = new Gathered(outputLimitBytes)
  for await (const item of readJournal(journal, { epoch: 1, offset: 0, n: 0 }, { signal })) {
    if (item.kind === 'output') (item.stream === 'stderr' ? stderr : stdout).add(item.data)
    if (item.kind === 'gap' && item.lostBytes > 0)
      for (const stream of [stdout, stderr]) stream.truncated = true
    if (item.kind === 'event' && item.event.event === 'process_exited')
      return result(item.event.data, stdout, stderr)
  }
  throw new PublicError('not_found', 'The sandbox was deleted before the command ended.')
}

function result(exit: ProcessExitedEvent, stdout: Gathered, stderr: Gathered): Result {
  const [out, err] = [stdout.text(), stderr.text()]
  return {
    exit_code: exit.exit_code,
    signal: exit.signal,
    timed_out: exit.timed_out,
    reason: exit.reason,
    errno: exit.errno ?? null,
    stdout: out.text,
    stderr: err.text,
    stdout_encoding: out.encoding,
    stderr_encoding: err.encoding,
    stdout_truncated: stdout.truncated,
    stderr_truncated: stderr.truncated,
  }
}

/** The first bytes of one stream. */
class Gathered {
  truncated = false
  readonly #limitBytes: number
  readonly #chunks: Buffer[] = []
  #bytes = 0

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  add(data: Buffer): void {
    const room = this.#limitBytes - this.#bytes
    if (data.length > room) this.truncated = true
    if (room <= 0) return
    // The data is a view that holds only until the next item.
    const kept = Buffer.from(data.subarray(0, room))
    this.#chunks.push(kept)
    this.#bytes += kept.length
  }

  text(): { readonly text: string; readonly encoding: 'utf-8' | 'base64' } {
    const bytes = Buffer.concat(this.#chunks)
    const whole = this.truncated ? withoutCutCharacter(bytes) : bytes
    return isUtf8(whole)
      ? { text: whole.toString('utf8'), encoding: 'utf-8' }
      : { text: bytes.toString('base64'), encoding: 'base64' }
  }
}

/** A limit may fall into a character: at most its first three bytes are left at the end. */
function withoutCutCharacter(bytes: Buffer): Buffer {
  for (let cut = 0; cut <= 3 && cut <= bytes.length; cut += 1) {
    const shorter = bytes.subarray(0, bytes.length - cut)
    if (isUtf8(shorter)) return shorter
  }
  return bytes
}
