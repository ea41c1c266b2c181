/** Why sandboxes fail, in words a client may read; causes go to the log. */
import { PublicError } from '@space/contract'
import type { MachineExitReason } from '../machines/machine.ts'
import type { SandboxFailure } from './record.ts'

const exits: Readonly<Record<MachineExitReason, SandboxFailure>> = {
  closed: {
    code: 'internal',
    reason: 'machine_closed',
    message: 'The virtual machine was ended by the node.',
  },
  powered_off: {
    code: 'failed_precondition',
    reason: 'guest_powered_off',
    message: 'The sandbox powered itself off.',
  },
  guest_panicked: {
    code: 'failed_precondition',
    reason: 'guest_panicked',
    message: "The sandbox's kernel panicked.",
  },
  vmm_died: { code: 'internal', reason: 'machine_died', message: 'The virtual machine ended unexpectedly.' },
  vmm_killed: {
    code: 'internal',
    reason: 'machine_killed',
    message: 'The virtual machine was killed on its host.',
  },
}

/** Why a sandbox whose machine ended is failed. */
export function failureOfExit(reason: MachineExitReason): SandboxFailure {
  return exits[reason]
}

/** Its machine was not there any more when the node started. */
export const machineGone: SandboxFailure = {
  code: 'internal',
  reason: 'machine_gone',
  message: 'The virtual machine ended while the node was not running.',
}

/** What a create that threw says. */
export function failureOfCreate(thrown: unknown): SandboxFailure {
  if (thrown instanceof PublicError) {
    return {
      code: thrown.code,
      reason: String(thrown.details['reason'] ?? thrown.code),
      message: thrown.message,
    }
  }
  return {
    code: 'internal',
    reason: 'create_failed',
    message: 'The sandbox could not be made; the log of its node says why.',
  }
}

/** The template a create names is not on this node. */
export function templateMissing(digest: string): PublicError {
  const message = `The template ${digest} is not on this node: build it, or name another.`
  return new PublicError('failed_precondition', message, { details: { reason: 'template_missing' } })
}

/** The node begins nothing any more; the next one will. */
export function nodeStopping(): PublicError {
  return new PublicError('service_unavailable', 'The node is stopping: try again.')
}
