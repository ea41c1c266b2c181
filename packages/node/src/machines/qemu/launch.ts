/** From a slot to a QEMU that waits in `-preconfig` with its control channel open. */
import { joinGroup, limitGroup } from '../../host/cgroups.ts'
import { type Descriptor, keepDescriptorsHere } from '../../host/descriptors.ts'
import { HeldProcess } from '../../host/pidfd.ts'
import { descriptorNumber, startProcess } from '../../host/start.ts'
import { dialIn, listenIn } from '../../host/unix-sockets.ts'
import { namespacePath, openTap } from '../../net/namespace.ts'
import type { Slot } from '../../net/slot.ts'
import type { Shape } from '../machine.ts'
import { MachineError } from '../machine-error.ts'
import { qemuArguments } from './argv.ts'
import type { QemuHost } from './host-setup.ts'
import { Qmp } from './qmp.ts'
import { type MachineRecord, writeRecord } from './record.ts'
import { createStderrFile } from './stderr-file.ts'
import { Vmm } from './vmm.ts'
import { machineCgroup, processLimits } from './vmm-limits.ts'

/** Names of the two sockets in a machine's folder. */
export const sockets = { qmp: 'qmp.sock', guest: 'guest.sock' } as const

export interface LaunchRequest {
  readonly folder: string
  readonly slot: Slot
  readonly shape: Shape
  /** Whether it waits for a snapshot's device state. */
  readonly incoming: boolean
}

export interface Launched {
  readonly vmm: Vmm
  readonly record: MachineRecord
}

/**
 * Starts a VMM and resolves when it waits for memory and disks. The folder's record names the slot before the process
 * exists and the process as soon as it does. On failure nothing runs; the slot stays the caller's.
 */
export async function launchVmm(
  host: QemuHost,
  request: LaunchRequest,
  signal?: AbortSignal,
): Promise<Launched> {
  const { folder, slot, shape } = request
  const planned: MachineRecord = {
    version: 1,
    driver: 'qemu',
    stage: 'starting',
    slot,
    shape,
    vmmVersion: host.version,
  }
  writeRecord(folder, planned)
  await limitGroup(host.slots.controllers, slot.group, machineCgroup(host, shape, request.incoming))
  signal?.throwIfAborted()
  const started = startVmm(host, request)
  const record: MachineRecord = { ...planned, process: started.held.identity }
  writeRecord(folder, record)
  const vmm = openVmm(host, folder, started)
  try {
    await joinGroup(slot.groupFolders, started.held.identity.pid)
    await vmm.explained(vmm.qmp.negotiate())
    signal?.throwIfAborted()
    return { vmm, record }
  } catch (error) {
    const end = await vmm.kill()
    if (error instanceof MachineError || signal?.aborted === true) throw error
    throw new MachineError('vmm_start_failed', end.stderr, { cause: error })
  }
}

interface Started {
  readonly held: HeldProcess
  readonly child: ReturnType<typeof startProcess>
  readonly stderr: Descriptor
}

function startVmm(host: QemuHost, { folder, slot, shape, incoming }: LaunchRequest): Started {
  using qmpListener = listenIn(folder, sockets.qmp)
  using guestListener = listenIn(folder, sockets.guest)
  using tap = openTap(slot.namespace)
  const stderr = createStderrFile()
  keepDescriptorsHere()
  const child = startProcess({
    program: host.program,
    args: qemuArguments({
      shape,
      accelerator: host.environment.accelerator,
      cpuModel: host.cpuModel,
      incoming,
      qmpListener: descriptorNumber(0),
      guestListener: descriptorNumber(1),
      tap: descriptorNumber(2),
    }),
    uid: slot.uid,
    gid: slot.uid,
    networkNamespace: namespacePath(slot.namespace),
    descriptors: [qmpListener.fd, guestListener.fd, tap.fd],
    output: stderr.fd,
    limits: processLimits,
  })
  const held = HeldProcess.open(child.pid)
  if (held === undefined) {
    stderr.close()
    throw new MachineError('vmm_start_failed', 'the VMM ended at once')
  }
  return { held, child, stderr }
}

function openVmm(host: QemuHost, folder: string, { held, child, stderr }: Started): Vmm {
  const qmp = new Qmp(dialIn(folder, sockets.qmp))
  return new Vmm({ held, child, stderr, qmp, watch: host.watch })
}
