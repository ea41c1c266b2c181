import type { CommandEvent, ProcessExit } from '@space/sdk'
import { CliFailure, exitCodes } from '../failure.ts'
import { renderBytes } from '../render/quantity.ts'
import { note, type Terminal, write } from '../terminal/terminal.ts'

export interface CopiedOutput {
  readonly exit: ProcessExit
  /** The last bytes of stderr, as text, for guessing why a command failed. */
  readonly stderrTail: string
}

export interface CopyOptions {
  /** One line of JSON an event instead of the bytes. */
  readonly json?: boolean | undefined
  readonly onStarted?: (() => void) | undefined
  readonly signal?: AbortSignal | undefined
  /** Ends the copy, without an exit, once output up to this offset has been written. */
  readonly upToOffset?: number | undefined
}

const tailBytes = 8 * 1024

/**
 * Copies a process's output byte for byte, stdout to stdout and stderr to stderr, no faster than they are read.
 * Returns how the process ended; undefined when the copy ended before it.
 */
export async function copyOutput(
  terminal: Terminal,
  events: AsyncIterable<CommandEvent>,
  options: CopyOptions = {},
): Promise<CopiedOutput | undefined> {
  let tail: Uint8Array = new Uint8Array()
  for await (const event of events) {
    if (event.type === 'process_started') options.onStarted?.()
    if (options.json) await write(terminal.stdout, `${eventJson(event)}\n`, options.signal)
    else await copyEvent(terminal, event, options.signal)
    if (event.type === 'stderr') tail = Buffer.concat([tail, event.data]).subarray(-tailBytes)
    if (event.type === 'process_exited') return { exit: event, stderrTail: new TextDecoder().decode(tail) }
    if (
      isOutput(event) &&
      event.offset + event.data.length >= (options.upToOffset ?? Number.POSITIVE_INFINITY)
    )
      return undefined
  }
  throw new CliFailure('the stream ended without saying how the process did', {
    exitCode: exitCodes.spaceFailed,
  })
}

async function copyEvent(
  terminal: Terminal,
  event: CommandEvent,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (event.type === 'stdout' || event.type === 'pty') await write(terminal.stdout, event.data, signal)
  else if (event.type === 'stderr') await write(terminal.stderr, event.data, signal)
  else if (event.type === 'resync_required')
    await note(
      terminal,
      `space: ${renderBytes(event.lostBytes)} of output were dropped by the journal's limit; it continues at byte ${event.firstOffset}`,
    )
}

function eventJson(event: CommandEvent): string {
  return JSON.stringify(
    isOutput(event) ? { ...event, data: Buffer.from(event.data).toString('base64') } : event,
  )
}

function isOutput(event: CommandEvent): event is Extract<CommandEvent, { data: Uint8Array }> {
  return event.type === 'stdout' || event.type === 'stderr' || event.type === 'pty'
}
