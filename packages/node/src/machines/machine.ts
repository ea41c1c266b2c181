/**
 * The one interface over VMMs. A Machine is our handle on one VMM process, which outlives the node service: everything
 * needed to find it again lies in its folder before it is started.
 *
 *   boot(spec) | restore(spec, snapshot) | adopt(folder) → Machine
 *   Machine: pause resume save close, guest() a byte stream to the agent, exited, usage
 *
 * Nothing above a driver knows which VMM runs. A contract test that passes on one driver passes on all.
 */
import type { Duplex } from 'node:stream'

export type EnvironmentId = 'firecracker-kvm' | 'qemu-kvm' | 'qemu-tcg' | 'fake'

export interface Environment {
  readonly id: EnvironmentId
  /** The VMM with its version, e.g. `qemu 7.2.22`. */
  readonly machine: string
  readonly accelerator: 'kvm' | 'tcg' | 'none'
}

export interface Shape {
  readonly vcpus: number
  readonly memoryMib: number
}

/** The kernel, initramfs and modules drive every machine of this node boots with; immutable, named by content. */
export interface GuestImage {
  readonly vmlinux: string
  readonly initramfs: string
  /** Read-only second drive: all modules of the kernel, mounted by the agent as /lib/modules. */
  readonly modulesDrive: string
  readonly kernelRelease: string
  /** Covers the three files and the agent inside: part of a snapshot's identity. */
  readonly digest: string
}

export interface MachineSpec {
  /** Root-owned folder of this machine; created by the caller, mode 0700, empty for a new machine. */
  readonly folder: string
  readonly sandboxId: string
  readonly shape: Shape
  readonly guestImage: GuestImage
  /** Disk layers, oldest first; the last is this machine's own writable one, made by the caller through disks/. */
  readonly disk: DiskChain
}

export interface DiskChain {
  /** Raw ext4 image of the template, read-only. */
  readonly base: string
  /** Frozen qcow2 layers over it, oldest first, read-only. */
  readonly frozen: readonly string[]
  /** The qcow2 layer this machine writes. */
  readonly writable: string
}

/** What a save leaves: files that are complete, synced and never written again. */
export interface MachineSnapshot {
  /** Guest memory, raw, as large as the shape, sparse, 0444: mapped private by every machine restored from it. */
  readonly memory: string
  /** Device state without RAM. */
  readonly devices: string
  /** Binds the device state: driver, VMM version, device set, shape, CPU model, guest image digest, tsc_khz. */
  readonly identity: SnapshotIdentity
}

export interface SnapshotIdentity {
  readonly driver: string
  readonly environment: EnvironmentId
  readonly vmmVersion: string
  readonly deviceSet: number
  readonly shape: Shape
  readonly cpuModel: string
  readonly guestImageDigest: string
  readonly tscKhz: number
}

export interface SaveTarget {
  /** An existing root-owned folder to put `memory` and `devices` in. */
  readonly folder: string
  /** The disk layer that becomes the machine's writable one when the present one is frozen by the save. */
  readonly nextWritable: string
  /** Whether the machine goes on after the save, or its VMM ends. */
  readonly afterwards: 'resume' | 'stop'
}

export type MachineExitReason = 'closed' | 'powered_off' | 'guest_panicked' | 'vmm_died' | 'vmm_killed'

export interface MachineExit {
  readonly reason: MachineExitReason
  /** For the log only: exit code or signal, and the last 64 KiB of the VMM's stderr. Never shown to a client. */
  readonly detail: string
}

export interface MachineUsage {
  readonly cpuSeconds: number
  /** Proportional set size of the VMM, so that shared snapshot pages count once over all. */
  readonly memoryBytes: number
  readonly diskBytes: number
}

export interface Machine {
  readonly folder: string
  readonly environment: Environment
  /** Stops the vCPUs; idempotent. */
  pause(): Promise<void>
  /** Lets the vCPUs run; idempotent. */
  resume(): Promise<void>
  /** Saves memory, devices and disk of one instant. The caller froze the guest before. */
  save(into: SaveTarget): Promise<{ snapshot: MachineSnapshot; disk: DiskChain; stoppedMs: number }>
  /**
   * A new connection to the guest channel. Only one is useful at a time; opening a second ends the first.
   * The stream is destroyed when the machine ends.
   */
  guest(signal?: AbortSignal): Promise<Duplex>
  /** Resolves once, when the VMM is gone and what it held on the host is released. Never rejects. */
  readonly exited: Promise<MachineExit>
  usage(): Promise<MachineUsage>
  /** Ends the VMM and removes what it made on the host (process, namespace, tap, cgroup, sockets). Idempotent. */
  close(): Promise<void>
  /** Lets go of the handle without ending the VMM: the node service stops, the machine goes on. */
  release(): Promise<void>
}

export interface MachineDriver {
  readonly name: string
  readonly environment: Environment
  /** Cold boot. Resolves once the VMM runs; the agent answers on guest() when it is up. */
  boot(spec: MachineSpec, signal?: AbortSignal): Promise<Machine>
  /** Restores paused-in-guest state; the vCPUs run when it resolves, the workload is still frozen by the agent. */
  restore(spec: MachineSpec, snapshot: MachineSnapshot, signal?: AbortSignal): Promise<Machine>
  /** Finds a machine that outlived the node service, or undefined when its VMM is gone. */
  adopt(spec: MachineSpec): Promise<Machine | undefined>
  /** Removes whatever a machine of this folder may have left on the host, after a crash at any point. Idempotent. */
  clear(folder: string): Promise<void>
  /** Why a snapshot cannot be restored here, or undefined when it can. */
  refuses(identity: SnapshotIdentity): string | undefined
  /** Keeps VMM processes of this shape started ahead and waiting; 0 ends them. */
  keepReady(shape: Shape, count: number): Promise<void>
  /** Ends VMMs started ahead and frees pooled slots. Machines that were handed out go on. */
  stop(): Promise<void>
}
