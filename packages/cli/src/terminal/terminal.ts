import type { Readable, Writable } from 'node:stream'

/** Where a command reads and writes: data on stdout, everything said to a person on stderr. */
export interface Terminal {
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number }
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number }
}

/** This process's own. A broken stdout or stderr is met where it is written to, not as a crash. */
export function processTerminal(): Terminal {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
  return { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr }
}

/** The reader of our stdout went away, as `head` does: nothing is wrong, and nothing more to be said. */
export class OutputClosed extends Error {
  override readonly name = 'OutputClosed'
}

/**
 * Writes and waits until it is taken, so that a slow reader slows the source and not this process's memory. An abort
 * ends the wait, with the signal's reason; what was handed over by then may still be written.
 */
export function write(stream: Writable, data: string | Uint8Array, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal?.reason)
    signal?.addEventListener('abort', onAbort, { once: true })
    stream.write(data, (error) => {
      signal?.removeEventListener('abort', onAbort)
      if (error === null || error === undefined) resolve()
      else
        reject(
          'code' in error && error.code === 'EPIPE'
            ? new OutputClosed('the reader of the output left')
            : error,
        )
    })
  })
}

/** One line of data. */
export function print(terminal: Terminal, line: string): Promise<void> {
  return write(terminal.stdout, `${line}\n`)
}

/** One line for a person. Nobody listening is no failure. */
export async function note(terminal: Terminal, line: string): Promise<void> {
  await write(terminal.stderr, `${line}\n`).catch(() => undefined)
}
