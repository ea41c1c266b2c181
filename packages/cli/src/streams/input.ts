import type { Readable } from 'node:stream'
import { SpaceError, type Stdin } from '@space/sdk'

/**
 * Copies our stdin to a process's until either ends. That the process no longer reads is its own affair, as in a
 * shell's pipeline; any other failure is thrown.
 */
export async function copyInput(from: Readable, to: Stdin, signal: AbortSignal): Promise<void> {
  try {
    for await (const chunk of from) await to.write(Buffer.from(chunk), { signal })
    await to.close({ signal })
  } catch (error) {
    if (signal.aborted || isBrokenPipe(error)) return
    throw error
  }
}

function isBrokenPipe(error: unknown): boolean {
  return (
    error instanceof SpaceError &&
    (error.code === 'failed_precondition' || error.details['reason'] === 'broken_pipe')
  )
}
