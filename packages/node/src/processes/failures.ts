/** What a process cannot do, by name and with what to do instead. */
import { PublicError } from '@space/contract'

/** What one agent can have in its table. */
export const maxUnendedPerSandbox = 4096

export function noSuchProcess(): PublicError {
  return new PublicError('not_found', 'This sandbox has no such process, or its output was kept long enough.')
}

export function tooManyProcesses(): PublicError {
  const message = `The sandbox already has ${maxUnendedPerSandbox} processes that have not ended: wait for some or kill them.`
  return new PublicError('failed_precondition', message, {
    details: { reason: 'too_many_processes', limit: maxUnendedPerSandbox },
  })
}

function precondition(reason: string, message: string): PublicError {
  return new PublicError('failed_precondition', message, { details: { reason } })
}

export function notRunning(): PublicError {
  return precondition('sandbox_not_running', 'The sandbox is not running.')
}

export function notStarted(): PublicError {
  return precondition('process_not_started', 'The process was not started yet: attach to its session first.')
}

export function hasEnded(): PublicError {
  return precondition('process_ended', 'The process has ended.')
}

export function stdinIsNull(): PublicError {
  return precondition(
    'stdin_not_piped',
    'The process has no stdin: create it with `"stdin": "pipe"` to write to it.',
  )
}

export function noTerminal(): PublicError {
  return precondition('no_terminal', 'The process has no terminal: create it with `pty` to resize it.')
}

export function notReachable(): PublicError {
  return new PublicError('service_unavailable', 'The node is taking the sandbox up again: try again.')
}
