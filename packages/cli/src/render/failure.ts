import { SpaceError } from '@space/sdk'
import { CliFailure, exitCodes, Interrupted } from '../failure.ts'
import { signalExitCode } from '../terminal/signals.ts'
import { OutputClosed } from '../terminal/terminal.ts'
import { visible } from './text.ts'

/** A failure as it is shown: what happened, what to do, and what to exit with. */
export interface ShownFailure {
  readonly code: string
  readonly message: string
  readonly remedy: string | undefined
  readonly requestId: string | undefined
  readonly exitCode: number
}

/** Turns whatever was thrown into what is shown; undefined when there is nothing to say. */
export function describeFailure(
  error: unknown,
): ShownFailure | { readonly exitCode: number; readonly message: undefined } {
  if (error instanceof Interrupted) return { exitCode: signalExitCode(error.signal), message: undefined }
  if (error instanceof OutputClosed) return { exitCode: 141, message: undefined }
  if (error instanceof CliFailure)
    return {
      code: error.code,
      message: error.message,
      remedy: error.remedy,
      requestId: undefined,
      exitCode: error.exitCode,
    }
  if (error instanceof SpaceError)
    return {
      code: error.code,
      message: error.message,
      remedy: remedyOf(error),
      requestId: error.requestId || undefined,
      exitCode: exitCodeOf(error),
    }
  if (hasRemedy(error))
    return {
      code: error.code,
      message: error.message,
      remedy: error.remedy,
      requestId: undefined,
      exitCode: exitCodes.failed,
    }
  return {
    code: 'internal',
    message: error instanceof Error ? error.message : String(error),
    remedy:
      'this is a defect of SPACE: run the command again with SPACE_LOG_LEVEL=debug and report what it prints',
    requestId: undefined,
    exitCode: exitCodes.failed,
  }
}

/** Failures of the set-up carry their own remedy; told by their form, so that clients load no server code. */
function hasRemedy(error: unknown): error is Error & { readonly code: string; readonly remedy: string } {
  if (!(error instanceof Error) || !('code' in error) || !('remedy' in error)) return false
  return typeof error.code === 'string' && typeof error.remedy === 'string'
}

/** The lines of a failure for a person. */
export function renderFailure(failure: ShownFailure): string {
  const lines = [
    `space: ${visible(failure.message)}${failure.requestId ? ` (request ${failure.requestId})` : ''}`,
  ]
  if (failure.remedy !== undefined) lines.push(`  → ${failure.remedy}`)
  return lines.join('\n')
}

/** The same as one line of JSON. */
export function failureJson(failure: ShownFailure): string {
  const { code, message, remedy, requestId } = failure
  return JSON.stringify({ error: { code, message, remedy: remedy ?? null, request_id: requestId ?? null } })
}

function exitCodeOf(error: SpaceError): number {
  if (error.code === 'not_found') return exitCodes.notFound
  return error.code === 'connection_failed' ? exitCodes.unreachable : exitCodes.failed
}

function remedyOf(error: SpaceError): string | undefined {
  switch (error.code) {
    case 'connection_failed':
      return 'is SPACE running? start it with `npm start` in its clone; another address is set by `space login URL`'
    case 'unauthorized':
      return 'the token is not accepted: run `space login URL` with a valid one, or check SPACE_API_TOKEN'
    case 'forbidden':
      return 'use a token with the scope this needs: `space token create --scope …`'
    case 'not_found':
      return '`space ps --all` lists the sandboxes of your account'
    case 'stream_lost':
      return 'the process goes on: `space logs -f` with its id continues its output'
    case 'capacity_unavailable':
    case 'rate_limited':
    case 'service_unavailable':
      return 'try again in a moment; `space rm` frees what is no longer needed'
    case 'internal':
      return 'the log of the server names the request'
    default:
      return undefined
  }
}
