/** How a process ended, in the three forms it has: what the agent says, what the row keeps, what the stream shows. */
import type { ExitReason, ProcessExitedEvent } from '@space/contract'
import { type Exit, type StartFailed, StartFailed_Reason } from '@space/contract/guest'
import type { ProcessExit } from '../store/process-rows.ts'

const fallbackErrno: Readonly<Record<StartFailed_Reason, string>> = {
  [StartFailed_Reason.UNSPECIFIED]: '',
  [StartFailed_Reason.PROGRAM_NOT_FOUND]: 'ENOENT',
  [StartFailed_Reason.PROGRAM_NOT_EXECUTABLE]: 'EACCES',
  [StartFailed_Reason.BAD_INTERPRETER]: 'ENOENT',
  [StartFailed_Reason.BAD_CWD]: 'ENOENT',
  [StartFailed_Reason.UNKNOWN_USER]: 'EINVAL',
  [StartFailed_Reason.ARGUMENTS_TOO_LONG]: 'E2BIG',
  [StartFailed_Reason.RESOURCES]: 'EAGAIN',
  [StartFailed_Reason.OTHER]: '',
}

/** The exit the agent told; numbers out of Linux's range are cut to it. */
export function exitOfAgent(exit: Exit, nowMs: number): ProcessExit {
  const signal = exit.signal >= 1 && exit.signal <= 64 ? exit.signal : undefined
  return {
    state: 'exited',
    exitCode: signal === undefined ? exit.exitCode & 0xff : undefined,
    signal,
    timedOut: exit.timedOut,
    reason: reasonOf(exit, signal),
    errno: '',
    exitedAtMs: nowMs,
  }
}

function reasonOf(exit: Exit, signal: number | undefined): ExitReason {
  if (exit.timedOut) return 'timeout'
  if (exit.outOfMemory) return 'out_of_memory'
  return signal === undefined ? 'exited' : 'signalled'
}

/** Why it never ran. Only the name of an error is taken from the guest. */
export function exitOfFailedStart(failed: StartFailed, nowMs: number): ProcessExit {
  const errno = /^E[A-Z0-9]{1,19}$/.test(failed.errno) ? failed.errno : (fallbackErrno[failed.reason] ?? '')
  return { ...withoutStatus('failed_to_start', 'failed_to_start', nowMs), errno }
}

/** An end the agent did not tell. */
export function exitWithoutAgent(
  reason: 'cancelled' | 'lost' | 'sandbox_deleted',
  nowMs: number,
): ProcessExit {
  return withoutStatus(reason === 'cancelled' ? 'exited' : 'lost', reason, nowMs)
}

function withoutStatus(state: ProcessExit['state'], reason: ExitReason, nowMs: number): ProcessExit {
  return {
    state,
    exitCode: undefined,
    signal: undefined,
    timedOut: false,
    reason,
    errno: '',
    exitedAtMs: nowMs,
  }
}

/** The data of `process_exited`. */
export function exitedEvent(exit: ProcessExit): ProcessExitedEvent {
  return {
    exit_code: exit.exitCode ?? null,
    signal: exit.signal ?? null,
    timed_out: exit.timedOut,
    reason: exit.reason,
    ...(exit.errno === '' ? {} : { errno: exit.errno }),
  }
}
