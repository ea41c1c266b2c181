import type { Shape, SnapshotIdentity } from '../machine.ts'
import { deviceSet } from './argv.ts'
import type { QemuHost } from './host-setup.ts'

/** How far the rate of the time stamp counter may be off, in parts per million, before guest clocks would run wrong. */
const maxTscPpm = 100

/** What a snapshot of a machine of this host is bound to. */
export function identityOf(host: QemuHost, shape: Shape, guestImageDigest: string): SnapshotIdentity {
  return {
    driver: 'qemu',
    environment: host.environment.id,
    vmmVersion: host.version,
    deviceSet,
    shape,
    cpuModel: host.cpuModel,
    guestImageDigest,
    tscKhz: host.tscKhz,
  }
}

/** Why this host cannot restore such a snapshot, or undefined. `microvm` is unversioned: state is bound to major.minor. */
export function whyRefused(host: QemuHost, identity: SnapshotIdentity): string | undefined {
  const here = identityOf(host, identity.shape, identity.guestImageDigest)
  if (identity.driver !== here.driver)
    return `it was made by ${identity.driver}, this host runs ${here.driver}`
  if (identity.environment !== here.environment)
    return `it was made in ${identity.environment}, this host is ${here.environment}`
  if (majorMinor(identity.vmmVersion) !== majorMinor(here.vmmVersion))
    return `it was made by QEMU ${identity.vmmVersion}, this host has ${here.vmmVersion}`
  if (identity.deviceSet !== here.deviceSet)
    return `its device set is ${identity.deviceSet}, not ${here.deviceSet}`
  if (identity.cpuModel !== here.cpuModel)
    return `its CPU model is ${identity.cpuModel}, not ${here.cpuModel}`
  const offPpm = (Math.abs(identity.tscKhz - here.tscKhz) / Math.max(1, here.tscKhz)) * 1e6
  if (offPpm > maxTscPpm) return `its time stamp counter runs at ${identity.tscKhz} kHz, not ${here.tscKhz}`
  return undefined
}

function majorMinor(version: string): string {
  return version.split('.').slice(0, 2).join('.')
}
