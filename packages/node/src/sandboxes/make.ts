/**
 * From what was asked for to a machine that answers: the template, the shape, the record, then the machine from the
 * base snapshot when there is one. A base that turns out to be unusable costs a cold boot, not the sandbox.
 */
import { mkdir } from 'node:fs/promises'
import type { Template, TemplateStore } from '../images/template-store.ts'
import type { GuestImage, Shape } from '../machines/machine.ts'
import type { BaseSnapshot } from '../snapshots/base.ts'
import type { Bases } from '../snapshots/bases.ts'
import { baseTemplate } from './base-template.ts'
import { templateMissing } from './failures.ts'
import { type MachineMakerOptions, type MadeMachine, makeMachine, newDisk, unmakeMachine } from './machine.ts'
import type { SandboxRecord, SandboxShape } from './record.ts'
import { type Sandbox, saveRecord } from './sandbox.ts'
import { roundShape } from './shape.ts'

export interface SandboxMakerOptions extends MachineMakerOptions {
  readonly templates: Pick<TemplateStore, 'resolve'>
  readonly bases: Bases
  readonly guestImage: GuestImage
  readonly nowMs: () => number
}

export interface NewSandbox {
  readonly sandboxId: string
  readonly templateDigest: string
  /** A disk of 0 MiB is as large as the template's. */
  readonly shape: SandboxShape
  readonly env: Readonly<Record<string, string>>
}

/** A shape without a base that can be restored; `again` when there is one that could not be. */
export interface MissingBase {
  readonly shape: Shape
  readonly again: boolean
}

export interface MadeSandbox {
  readonly made: MadeMachine
  readonly template: Template
  readonly missesBase: MissingBase | undefined
}

/** Makes the machine of a sandbox whose folder does not exist yet. What a failure leaves is the record alone. */
export async function makeSandbox(
  sandbox: Sandbox,
  wanted: NewSandbox,
  options: SandboxMakerOptions,
  signal: AbortSignal,
): Promise<MadeSandbox> {
  const template = await options.templates.resolve(wanted.templateDigest)
  if (template === undefined) throw templateMissing(wanted.templateDigest)
  const shape = { ...roundShape(wanted.shape), diskMib: Math.max(wanted.shape.diskMib, template.diskMib) }
  // A base holds a disk of the template's size: a larger one is booted, and grown by its guest.
  const growRoot = shape.diskMib > template.diskMib
  const base = growRoot ? undefined : await options.bases.find(baseTemplate(template), shape)
  const record: SandboxRecord = {
    version: 1,
    sandboxId: sandbox.id,
    phase: 'creating',
    templateDigest: template.digest,
    shape,
    env: { ...template.defaults.env, ...wanted.env },
    defaults: { user: template.defaults.user, cwd: template.defaults.cwd },
    disk: newDisk(sandbox.paths, base),
    guestImage: options.guestImage,
    createdAtMs: options.nowMs(),
    startedAtMs: 0,
  }
  await mkdir(sandbox.paths.folder, { recursive: true, mode: 0o700 })
  const made =
    (base && (await restored(sandbox, record, template, base, options, signal))) ??
    (await booted(sandbox, record, template, growRoot, options, signal))
  const misses = made.from === 'boot' && !growRoot
  return { made, template, missesBase: misses ? { shape, again: base !== undefined } : undefined }
}

/** Undefined when the base could not be restored: nothing of the attempt is left. */
async function restored(
  sandbox: Sandbox,
  record: SandboxRecord,
  { rootImage }: Template,
  base: BaseSnapshot,
  options: SandboxMakerOptions,
  signal: AbortSignal,
): Promise<MadeMachine | undefined> {
  await saveRecord(sandbox, record)
  try {
    return await makeMachine(sandbox.paths, record, { rootImage, base, growRoot: false }, options, signal)
  } catch (error) {
    await unmakeMachine(sandbox.paths, options.driver)
    signal.throwIfAborted()
    options.log.warn({ sandbox: sandbox.id, err: error }, 'a base snapshot could not be restored: booting')
    return undefined
  }
}

async function booted(
  sandbox: Sandbox,
  record: SandboxRecord,
  { rootImage }: Template,
  growRoot: boolean,
  options: SandboxMakerOptions,
  signal: AbortSignal,
): Promise<MadeMachine> {
  const own = { ...record, disk: newDisk(sandbox.paths, undefined) }
  await saveRecord(sandbox, own)
  try {
    return await makeMachine(sandbox.paths, own, { rootImage, base: undefined, growRoot }, options, signal)
  } catch (error) {
    await unmakeMachine(sandbox.paths, options.driver)
    throw error
  }
}
