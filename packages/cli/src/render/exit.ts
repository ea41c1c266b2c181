import { signalName } from '@space/contract/plain'
import type { ProcessExit } from '@space/sdk'
import { exitCodes } from '../failure.ts'

/** What `run` and `exec` exit with for the end of a process: its own code, or what a shell would report. */
export function exitCodeOf(exit: ProcessExit): number {
  switch (exit.reason) {
    case 'exited':
      return exit.exitCode ?? exitCodes.spaceFailed
    case 'signalled':
    case 'out_of_memory':
      return 128 + (exit.signal ?? 9)
    case 'timeout':
      return exitCodes.timedOut
    case 'failed_to_start':
      return exit.errno === 'ENOENT' ? exitCodes.noSuchProgram : exitCodes.cannotStart
    case 'cancelled':
    case 'lost':
    case 'sandbox_deleted':
      return exitCodes.spaceFailed
  }
}

/** A sentence on an end that the output alone does not explain; undefined for an ordinary one. */
export function explainExit(exit: ProcessExit, argv: readonly string[]): string | undefined {
  switch (exit.reason) {
    case 'exited':
      return undefined
    case 'signalled':
      return `ended by ${exit.signal === null ? 'a signal' : (signalName(exit.signal) ?? `signal ${exit.signal}`)}`
    case 'out_of_memory':
      return 'ended because the sandbox ran out of memory: create it with more (--memory-mib)'
    case 'timeout':
      return 'ended by its time limit (--timeout)'
    case 'failed_to_start':
      return `${argv[0] ?? 'the program'} could not be started: ${explainErrno(exit.errno)}`
    case 'cancelled':
      return 'withdrawn: nobody attached to it in time'
    case 'lost':
      return 'lost: the sandbox ended without telling how the process did'
    case 'sandbox_deleted':
      return 'ended: its sandbox was deleted'
  }
}

function explainErrno(errno: string | undefined): string {
  switch (errno) {
    case 'ENOENT':
      return 'no such program, interpreter or working directory in the sandbox (ENOENT)'
    case 'EACCES':
      return 'permission denied (EACCES)'
    case 'ENOEXEC':
      return 'not a program Linux can run; is a #! line missing? (ENOEXEC)'
    default:
      return errno ?? 'no reason given'
  }
}

const networkComplaints = new RegExp(
  [
    'Temporary failure (?:in name resolution|resolving)',
    'Name or service not known',
    'Could not resolve',
    'could not be resolved',
    'failed to resolve',
    'Network is unreachable',
    'No route to host',
    'Failed to establish a new connection',
    'EAI_AGAIN',
    'ENOTFOUND',
    'ENETUNREACH',
    'EHOSTUNREACH',
    'ETIMEDOUT',
    'Connection timed out',
  ].join('|'),
  'i',
)

/**
 * Whether a failed command seems to have failed for lack of network, judged by the end of what it wrote to stderr.
 * A guess, worded as one where it is shown.
 */
export function seemsToLackNetwork(exit: ProcessExit, stderrTail: string): boolean {
  return exit.reason === 'exited' && exit.exitCode !== 0 && networkComplaints.test(stderrTail)
}
