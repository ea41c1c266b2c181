import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { type GuestLink, type LinkSecretStore, memorySecrets, openGuestLink } from '@space/node/guest'
import type { DiskChain, Machine, MachineDriver, MachineSnapshot, MachineSpec } from '@space/node/machine'

/** What a driver brings to be held to the contract. */
export interface ContractSubject {
  /** A driver as a newly started node makes it: each call another one, on the same host. */
  driver(): Promise<MachineDriver>
  /** A spec for a new machine: an empty folder of its own and a writable layer over the template. */
  spec(): Promise<MachineSpec>
  /** A spec for a machine whose disk continues these layers with a writable one of its own. */
  specOver(disk: Pick<DiskChain, 'base' | 'frozen'>): Promise<MachineSpec>
  /** An empty folder for a snapshot, and the path of the layer that is written after it; its file does not exist. */
  saveTarget(): Promise<{ readonly folder: string; readonly nextWritable: string }>
  /** Kills the VMM of a machine behind the driver's back. */
  kill(machine: Machine): Promise<void>
  /** Everything that is left on the host of the machine of a folder, named: empty after its end. */
  leftovers(folder: string): Promise<readonly string[]>
  /** Ends the driver and removes what the subject made. */
  close(): Promise<void>
  /** How long the first answer after a boot may take. */
  readonly bootTimeoutMs: number
}

/** A machine under test with its link and what would be on the node's disk about it. */
export interface Booted {
  readonly spec: MachineSpec
  readonly machine: Machine
  readonly secrets: LinkSecretStore
  readonly link: GuestLink
}

/** Opens a link with the patience of a boot. */
export function linkTo(
  machine: Pick<Machine, 'guest'>,
  secrets: LinkSecretStore,
  handshakeTimeoutMs: number,
): Promise<GuestLink> {
  return openGuestLink({
    connect: (signal) => machine.guest(signal),
    secrets,
    budgets: { handshakeTimeoutMs },
  })
}

/** Boots a machine and waits for its agent. */
export async function boot(subject: ContractSubject, driver: MachineDriver): Promise<Booted> {
  const spec = await subject.spec()
  const machine = await driver.boot(spec)
  const secrets = memorySecrets()
  const link = await linkTo(machine, secrets, subject.bootTimeoutMs)
  return { spec, machine, secrets, link }
}

/** Prepares a guest for a save as a node does: written back, then workload and filesystem frozen. */
export async function freeze({ client }: GuestLink): Promise<void> {
  await client.sync({})
  await client.freeze({})
}

/** Wakes a restored guest. */
export async function wake({ client }: GuestLink, hostname: string): Promise<void> {
  await client.wake({
    unixNs: BigInt(Date.now()) * 1_000_000n,
    entropy: randomBytes(64),
    hostname,
    generation: randomBytes(8).toString('hex'),
  })
}

/** Restores a snapshot on a disk of its own, with a copy of the secrets the snapshot was taken with. */
export async function restore(
  subject: ContractSubject,
  driver: MachineDriver,
  saved: { readonly snapshot: MachineSnapshot; readonly disk: DiskChain },
  secrets: LinkSecretStore,
): Promise<Booted> {
  const spec = await subject.specOver({ base: saved.disk.base, frozen: saved.disk.frozen })
  const machine = await driver.restore(spec, saved.snapshot)
  const own = memorySecrets(await secrets.read())
  const link = await linkTo(machine, own, subject.bootTimeoutMs)
  return { spec, machine, secrets: own, link }
}

/** Resolves once the stream is closed. */
export function streamClosed(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    stream.on('error', () => resolve())
    stream.once('close', () => resolve())
    stream.resume()
    if (stream.destroyed) resolve()
  })
}
