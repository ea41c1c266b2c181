/** Loads a snapshot's device state into a machine that was built with `-incoming defer`. */
import { openToRead } from '../../host/descriptors.ts'
import { MachineError } from '../machine-error.ts'
import { record } from './qmp-lines.ts'
import type { Vmm } from './vmm.ts'

/** How long QEMU may take to load 13 kB of device state. */
const loadTimeoutMs = 30_000

/** Resolves when the vCPUs run. `snapshot_unusable` when QEMU does not take the state: it ends then. */
export async function loadDevices(vmm: Vmm, devicesPath: string): Promise<void> {
  const running = Promise.withResolvers<void>()
  const stop = vmm.qmp.onEvent(({ name }) => {
    if (name === 'RESUME') running.resolve()
  })
  void vmm.qmp.closed.then(() =>
    running.reject(new MachineError('vmm_gone', 'while the device state was loaded')),
  )
  running.promise.catch(() => undefined)
  const timer = setTimeout(
    () => running.reject(new MachineError('vmm_timeout', 'the device state was not loaded')),
    loadTimeoutMs,
  )
  try {
    using devices = openToRead(devicesPath)
    await vmm.explained(vmm.qmp.execute('getfd', { fdname: 'devices' }, { descriptors: [devices.fd] }))
    await vmm.explained(vmm.qmp.execute('migrate-incoming', { uri: 'fd:devices' }))
    await vmm.explained(running.promise)
  } catch (cause) {
    if (cause instanceof MachineError && cause.code === 'vmm_gone')
      throw new MachineError('snapshot_unusable', cause.message, { cause })
    throw cause
  } finally {
    clearTimeout(timer)
    stop()
  }
}

/** The run state of a machine, e.g. `running`, `paused`, `shutdown`. */
export async function runState(vmm: Vmm): Promise<string> {
  const status = record(await vmm.explained(vmm.qmp.execute('query-status')))['status']
  return typeof status === 'string' ? status : 'unknown'
}
