import type { MessageInitShape } from '@bufbuild/protobuf'
import type { StartSchema } from '@space/contract/guest'
import type { ProcessRow } from '../store/process-rows.ts'

/** The template's user and where that user starts: for commands that name neither. */
export interface StartDefaults {
  readonly user: string
  readonly cwd: string
}

/** What the agent is asked to start. A command with a user of its own starts in that user's home. */
export function startRequest(
  { processId, command }: ProcessRow,
  defaults: StartDefaults,
): MessageInitShape<typeof StartSchema> {
  return {
    processId,
    argv: [...command.argv],
    env: { ...command.env },
    cwd: command.cwd === '' && command.user === '' ? defaults.cwd : command.cwd,
    user: command.user === '' ? defaults.user : command.user,
    stdinPipe: command.stdinPipe,
    timeoutMs: BigInt(command.timeoutMs),
    ...(command.pty === undefined ? {} : { pty: command.pty }),
  }
}
