export type MachineErrorCode =
  | 'vmm_start_failed'
  | 'vmm_refused'
  | 'vmm_protocol'
  | 'vmm_timeout'
  | 'vmm_gone'
  | 'snapshot_unusable'
  | 'machine_closed'
  | 'no_capacity'

/**
 * A machine could not do what was asked. The message is for the log: parts of it may come from a VMM, and it is never
 * shown to a client.
 */
export class MachineError extends Error {
  readonly code: MachineErrorCode

  constructor(code: MachineErrorCode, message: string, options?: ErrorOptions) {
    super(`${code}: ${message}`, options)
    this.name = 'MachineError'
    this.code = code
  }
}
