import type { CommandRequest, ExecAnswer, ExecRequest, Process, Session } from '@space/contract'
import { address } from './address.ts'
import type { CallOptions, Connection } from './connection.ts'
import { type EventStreamOptions, sessionEvents } from './event-stream.ts'
import { Stdin } from './stdin.ts'
import type { CommandEvent } from './stream-cursor.ts'

/** A command and the stream of its output: iterating attaches, which starts the process. */
export interface RunningCommand extends AsyncIterable<CommandEvent> {
  readonly process: Process
  readonly session: Session
  readonly stdin: Stdin
}

/** Commands: what runs in a sandbox. */
export class Commands {
  readonly #at: Connection

  constructor(at: Connection) {
    this.#at = at
  }

  /** Assigns a process id and a session; the process starts when its events are first read. */
  create(
    sandboxId: string,
    body: CommandRequest,
    options: CallOptions = {},
  ): Promise<{ process: Process; session: Session }> {
    return this.#at.transport.json({
      method: 'POST',
      url: address(this.#at.apiUrl, ['v1', 'sandboxes', sandboxId, 'commands']),
      body,
      waitMs: 30_000,
      signal: options.signal,
    })
  }

  /** Creates a command and returns it ready to be iterated: every event once, across lost connections. */
  async run(
    sandboxId: string,
    body: CommandRequest,
    options: EventStreamOptions = {},
  ): Promise<RunningCommand> {
    const { process, session } = await this.create(sandboxId, body, { signal: options.signal })
    return this.attach(process, session, options)
  }

  /** The same for a process that exists, with a session made for it. */
  attach(process: Process, session: Session, options: EventStreamOptions = {}): RunningCommand {
    const transport = this.#at.transport
    return {
      process,
      session,
      stdin: new Stdin(transport, session),
      [Symbol.asyncIterator]: () => sessionEvents(transport, session, options),
    }
  }

  /** Runs a command to its end in one call; the answer holds the output up to `output_limit_bytes`. */
  async exec(
    sandboxId: string,
    body: ExecRequest,
    options: CallOptions & { maxMs?: number } = {},
  ): Promise<ExecAnswer> {
    const base = await this.#at.dataPlaneUrl(sandboxId, options.signal)
    return this.#at.transport.json({
      method: 'POST',
      url: address(base, ['v1', 'sandboxes', sandboxId, 'exec']),
      body,
      waitMs: options.maxMs ?? 3_600_000,
      signal: options.signal,
    })
  }
}
