/** Finding a machine again that outlived the node service, and clearing away one that did not. */
import { HeldProcess } from '../../host/pidfd.ts'
import { dialIn } from '../../host/unix-sockets.ts'
import type { MachineSpec } from '../machine.ts'
import { removeMachineFiles } from './folder.ts'
import type { QemuHost } from './host-setup.ts'
import { sockets } from './launch.ts'
import { QemuMachine } from './qemu-machine.ts'
import { Qmp } from './qmp.ts'
import { type MachineRecord, readRecord } from './record.ts'
import { runState } from './restore.ts'
import { Vmm } from './vmm.ts'

/** How long an adopted VMM may take to greet. */
const greetMs = 20_000

/** The machine of the folder, or undefined when its VMM is gone, half made or over; then it is cleared away. */
export async function adoptMachine(host: QemuHost, spec: MachineSpec): Promise<QemuMachine | undefined> {
  const record = readRecord(spec.folder)
  const vmm = record?.stage === 'running' ? await adoptVmm(host, spec.folder, record) : undefined
  if (record === undefined || vmm === undefined) {
    await clearMachine(host, spec.folder)
    return undefined
  }
  const guestImageDigest = spec.guestImage.digest
  return new QemuMachine({ host, folder: spec.folder, record, vmm, disk: spec.disk, guestImageDigest })
}

async function adoptVmm(host: QemuHost, folder: string, record: MachineRecord): Promise<Vmm | undefined> {
  if (record.process === undefined) return undefined
  const held = HeldProcess.open(record.process.pid, record.process.startTicks)
  if (held === undefined) return undefined
  try {
    const qmp = new Qmp(dialIn(folder, sockets.qmp))
    const vmm = new Vmm({ held, qmp, watch: host.watch, stderr: held.takeDescriptor(2) })
    await vmm.explained(qmp.negotiate(greetMs))
    const state = await runState(vmm)
    if (state === 'running' || state === 'paused') return vmm
    await vmm.kill()
  } catch {
    // A VMM that cannot be talked to is of no use to anybody.
    held.signal('SIGKILL')
  }
  return undefined
}

/** Removes whatever a machine of this folder left on the host; whatever else lies in the folder stays. */
export async function clearMachine(host: QemuHost, folder: string): Promise<void> {
  const record = readRecord(folder)
  if (record !== undefined) {
    if (record.process !== undefined) {
      using held = HeldProcess.open(record.process.pid, record.process.startTicks)
      held?.signal('SIGKILL')
    }
    await host.slots.release(record.slot)
  }
  removeMachineFiles(folder)
}
