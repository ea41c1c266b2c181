/**
 * Makes one sandbox's machine and leaves it answering.
 *
 *   record written ─▶ layers ─▶ restore of the base snapshot | cold boot ─▶ link ─▶ woken: clock, entropy, name, env
 *
 * Everything made here is known to the record or the machine's folder first; whoever catches the failure clears it.
 */
import { link, mkdir, rm } from 'node:fs/promises'
import { PublicError } from '@space/contract'
import type { Logger } from 'pino'
import { createLayer } from '../disks/index.ts'
import { type GuestLink, type GuestSession, openGuestSession } from '../guest/index.ts'
import type { Machine, MachineDriver, MachineSpec } from '../machines/machine.ts'
import type { BaseSnapshot } from '../snapshots/base.ts'
import { wakeGuest } from './guest.ts'
import { fileSecrets } from './link-secrets.ts'
import type { SandboxPaths } from './paths.ts'
import type { SandboxRecord } from './record.ts'

export interface MachineMakerOptions {
  readonly driver: MachineDriver
  readonly log: Logger
  /** Longest time from the start of a cold boot to the agent's answer. */
  readonly bootTimeoutMs: number
  /** The same for a restore. */
  readonly restoreTimeoutMs: number
  /** Told of each link to the agent: its table of processes is worth a look. */
  readonly onLink: (link: GuestLink) => void
}

/** A machine that answers, and how it came to be. */
export interface MadeMachine {
  readonly machine: Machine
  readonly session: GuestSession
  readonly from: 'base' | 'boot'
}

/** The layers of a new sandbox, under names of its own. */
export function newDisk(paths: SandboxPaths, base: BaseSnapshot | undefined): SandboxRecord['disk'] {
  return {
    base: paths.baseLayer,
    frozen: base === undefined ? [] : [paths.frozenLayer(0)],
    writable: paths.writableLayer,
  }
}

/** What a driver needs to know of a sandbox's machine. */
export function machineSpec(paths: SandboxPaths, record: SandboxRecord): MachineSpec {
  const { sandboxId, shape, guestImage, disk } = record
  const { vcpus, memoryMib } = shape
  return { folder: paths.machine, sandboxId, shape: { vcpus, memoryMib }, guestImage, disk }
}

/** Opens the links to a sandbox's machine, with the secrets kept in its folder. */
export function openSession(
  paths: SandboxPaths,
  machine: Machine,
  options: MachineMakerOptions,
): GuestSession {
  return openGuestSession({
    machine,
    secrets: fileSecrets(paths.linkSecrets),
    onEvent: (event) => {
      if (event.kind === 'linked') options.onLink(event.link)
      else if (event.kind === 'link_ended') options.log.debug({ end: event.end }, 'guest link ended')
      else options.log.debug({ err: event.error }, 'guest link not opened')
    },
  })
}

/** Makes the machine of a record whose folder holds nothing else yet. */
export async function makeMachine(
  paths: SandboxPaths,
  record: SandboxRecord,
  from: { readonly rootImage: string; readonly base: BaseSnapshot | undefined; readonly growRoot: boolean },
  options: MachineMakerOptions,
  signal: AbortSignal,
): Promise<MadeMachine> {
  await makeLayers(paths, record, from)
  const spec = machineSpec(paths, record)
  await mkdir(paths.machine, { mode: 0o700 })
  const { base } = from
  if (base !== undefined) {
    await fileSecrets(paths.linkSecrets).write({ current: base.linkSecret })
    const machine = await options.driver.restore(spec, base.snapshot, signal)
    return {
      ...(await answer(paths, record, machine, options.restoreTimeoutMs, false, options, signal)),
      from: 'base',
    }
  }
  const machine = await options.driver.boot(spec, signal)
  const made = await answer(paths, record, machine, options.bootTimeoutMs, from.growRoot, options, signal)
  return { ...made, from: 'boot' }
}

/** Takes away what `makeMachine` made, so that it can be made another way. */
export async function unmakeMachine(paths: SandboxPaths, driver: MachineDriver): Promise<void> {
  await driver.clear(paths.machine)
  const made = [paths.machine, paths.linkSecrets, paths.baseLayer, paths.frozenLayer(0), paths.writableLayer]
  for (const path of made) await rm(path, { recursive: true, force: true })
}

async function makeLayers(
  paths: SandboxPaths,
  record: SandboxRecord,
  from: { readonly rootImage: string; readonly base: BaseSnapshot | undefined },
): Promise<void> {
  await Promise.all([
    link(from.rootImage, paths.baseLayer),
    from.base === undefined ? undefined : link(from.base.disk, paths.frozenLayer(0)),
    createLayer(paths.writableLayer, record.shape.diskMib * 2 ** 20),
  ])
}

async function answer(
  paths: SandboxPaths,
  record: SandboxRecord,
  machine: Machine,
  timeoutMs: number,
  growRoot: boolean,
  options: MachineMakerOptions,
  signal: AbortSignal,
): Promise<{ machine: Machine; session: GuestSession }> {
  const session = openSession(paths, machine, options)
  const patience = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
  try {
    const link = await session.link(patience)
    const { failedHooks } = await wakeGuest(link, record, patience)
    if (failedHooks.length > 0)
      options.log.warn({ sandbox: record.sandboxId, hooks: failedHooks.length }, 'wake hooks failed')
    if (growRoot) await link.client.growRoot({}, { signal: patience })
    return { machine, session }
  } catch (error) {
    await session.close()
    await machine.close()
    signal.throwIfAborted()
    if (patience.aborted) throw noAnswer(timeoutMs, error)
    throw error
  }
}

function noAnswer(timeoutMs: number, cause: unknown): PublicError {
  const message = `The sandbox's guest did not answer within ${timeoutMs / 1000} s.`
  return new PublicError('service_unavailable', message, {
    details: { reason: 'guest_did_not_answer' },
    cause,
  })
}
