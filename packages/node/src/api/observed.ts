/** What the node says of its sandboxes and processes, in the messages of proto/node/v1. */
import { create } from '@bufbuild/protobuf'
import { PublicError } from '@space/contract'
import {
  EnvironmentSchema,
  errorDetail,
  type ObservedSandbox,
  ObservedSandbox_State,
  ObservedSandboxSchema,
  type Process,
  Process_State,
  ProcessSchema,
} from '@space/contract/node-link'
import type { Environment } from '../machines/machine.ts'
import type { ProcessView } from '../processes/processes.ts'
import type { Sandbox, SandboxPhase } from '../sandboxes/sandbox.ts'
import type { ProcessRowState } from '../store/process-rows.ts'

const sandboxStates: Readonly<Record<SandboxPhase['kind'], ObservedSandbox_State>> = {
  creating: ObservedSandbox_State.CREATING,
  running: ObservedSandbox_State.RUNNING,
  released: ObservedSandbox_State.RUNNING,
  failed: ObservedSandbox_State.FAILED,
  // Until nothing is left it is as it was for whoever asks; the answer of Delete says when it is gone.
  deleting: ObservedSandbox_State.RUNNING,
}

const processStates: Readonly<Record<ProcessRowState, Process_State>> = {
  created: Process_State.CREATED,
  starting: Process_State.STARTING,
  running: Process_State.RUNNING,
  exited: Process_State.EXITED,
  failed_to_start: Process_State.FAILED_TO_START,
  lost: Process_State.LOST,
}

/** The environment a sandbox runs in. */
export function environmentMessage(environment: Environment, kernelRelease: string) {
  const { id, machine, accelerator } = environment
  return create(EnvironmentSchema, { id, machine, accelerator, kernel: kernelRelease })
}

/** One sandbox as it is now; `gone` when nothing of it is left. */
export function observedSandbox(sandbox: Sandbox, environment: Environment, gone = false): ObservedSandbox {
  const { phase, record } = sandbox
  const failure =
    phase.kind === 'failed'
      ? new PublicError(phase.failure.code, phase.failure.message, {
          details: { reason: phase.failure.reason },
        })
      : undefined
  return create(ObservedSandboxSchema, {
    sandboxId: sandbox.id,
    state: gone ? ObservedSandbox_State.DELETED : sandboxStates[phase.kind],
    ...(failure === undefined ? {} : { error: errorDetail(failure), errorMessage: failure.message }),
    startedAtUnixMs: BigInt(record?.startedAtMs ?? 0),
    lastActiveAtUnixMs: BigInt(sandbox.lastActiveAtMs),
    ...(record === undefined
      ? {}
      : {
          shape: record.shape,
          environment: environmentMessage(environment, record.guestImage.kernelRelease),
        }),
  })
}

/** One process as it is now. */
export function processMessage({ row, firstOffset, nextOffset }: ProcessView): Process {
  const { command, exit } = row
  return create(ProcessSchema, {
    sandboxId: row.sandboxId,
    processId: row.processId,
    state: processStates[row.state],
    command: {
      argv: [...command.argv],
      env: { ...command.env },
      cwd: command.cwd,
      user: command.user,
      stdinPipe: command.stdinPipe,
      ptyCols: command.pty?.cols ?? 0,
      ptyRows: command.pty?.rows ?? 0,
      timeoutMs: BigInt(command.timeoutMs),
      keepAwake: command.keepAwake,
      metadata: { ...command.metadata },
    },
    pid: row.pid,
    ...(exit?.exitCode === undefined ? {} : { exitCode: exit.exitCode }),
    ...(exit?.signal === undefined ? {} : { signal: exit.signal }),
    timedOut: exit?.timedOut ?? false,
    reason: exit?.reason ?? '',
    errno: exit?.errno ?? '',
    createdAtUnixMs: BigInt(row.createdAtMs),
    startedAtUnixMs: BigInt(row.startedAtMs),
    exitedAtUnixMs: BigInt(exit?.exitedAtMs ?? 0),
    outputBytes: BigInt(nextOffset - firstOffset),
    outputFirstOffset: BigInt(firstOffset),
    outputNextOffset: BigInt(nextOffset),
  })
}
