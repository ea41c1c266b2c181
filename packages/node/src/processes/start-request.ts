import type { MessageInitShape } from '@bufbuild/protobuf'
import type { StartSchema } from '@space/contract/guest'
import type { ProcessRow } from '../store/process-rows.ts'

/** What the agent is asked to start. */
export function startRequest({ processId, command }: ProcessRow): MessageInitShape<typeof StartSchema> {
  return {
    processId,
    argv: [...command.argv],
    env: { ...command.env },
    cwd: command.cwd,
    user: command.user,
    stdinPipe: command.stdinPipe,
    timeoutMs: BigInt(command.timeoutMs),
    ...(command.pty === undefined ? {} : { pty: command.pty }),
  }
}
