/** The base snapshots of this node: found, made once however many ask, and at most so many for a template. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { GuestImage, MachineDriver, Shape } from '../machines/machine.ts'
import {
  type BaseSnapshot,
  basesFolder,
  findBase,
  listBases,
  listForeignBases,
  listLeftovers,
  removeBase,
  shapeName,
  touchBase,
} from './base.ts'
import { type BaseTemplate, makeBase } from './make-base.ts'

export interface BasesOptions {
  readonly driver: MachineDriver
  readonly guestImage: GuestImage
  readonly nowMs: () => number
  readonly log: Logger
  readonly bootTimeoutMs: number
}

/** The least recently used base goes when a template has more. */
export const maxBasesPerTemplate = 8

export class Bases {
  readonly #options: BasesOptions
  readonly #making = new Map<string, Promise<void>>()
  readonly #stop = new AbortController()
  /** One base is made at a time: each is a whole cold boot. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(options: BasesOptions) {
    this.#options = options
  }

  /** The base of a shape when it can be restored here. */
  async find(template: BaseTemplate, shape: Shape): Promise<BaseSnapshot | undefined> {
    const { driver, guestImage, log, nowMs } = this.#options
    const found = await findBase(template.folder, template.digest, shape, (identity) =>
      identity.guestImageDigest === guestImage.digest
        ? driver.refuses(identity)
        : 'it has another guest image',
    )
    if (found.kind === 'unusable') {
      log.warn(
        { template: template.digest, shape: shapeName(shape), why: found.why },
        'a base snapshot cannot be used',
      )
    }
    if (found.kind !== 'usable') return undefined
    await touchBase(found.base, nowMs())
    return found.base
  }

  /** Makes the base of a shape when there is none that can be used. Who asks meanwhile waits for the same one. */
  async ensure(template: BaseTemplate, shape: Shape): Promise<void> {
    if ((await this.find(template, shape)) !== undefined) return
    await this.remake(template, shape)
  }

  /** Makes the base of a shape anew. */
  remake(template: BaseTemplate, shape: Shape): Promise<void> {
    const key = `${template.digest} ${shapeName(shape)}`
    const known = this.#making.get(key)
    if (known !== undefined) return known
    const made = this.#turn.then(() => this.#make(template, shape)).finally(() => this.#making.delete(key))
    this.#turn = made.catch(() => undefined)
    this.#making.set(key, made)
    return made
  }

  /** Shapes that have a base, most recently used first. */
  async shapes(template: Pick<BaseTemplate, 'folder'>): Promise<Shape[]> {
    return await listBases(template.folder)
  }

  /** Clears away what interrupted runs left. */
  async clear(templates: readonly Pick<BaseTemplate, 'folder'>[]): Promise<void> {
    for (const template of templates) {
      for (const folder of await listLeftovers(template.folder)) {
        await this.#options.driver.clear(join(folder, 'machine'))
        await rm(folder, { recursive: true, force: true })
      }
    }
  }

  /** Removes what was made for another guest image. Sandboxes made from it have its layer under a name of their own. */
  async prune(templates: readonly Pick<BaseTemplate, 'folder' | 'digest'>[]): Promise<void> {
    const { guestImage } = this.#options
    for (const { folder, digest } of templates) {
      const shapes = await listForeignBases(folder, guestImage.digest)
      for (const shape of shapes) await this.#remove({ folder, digest }, shape, 'pruned')
    }
  }

  /** Gives up what is being made and resolves when nothing of it is left. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await Promise.allSettled(this.#making.values())
  }

  async #make(template: BaseTemplate, shape: Shape): Promise<void> {
    this.#stop.signal.throwIfAborted()
    const { driver, guestImage, bootTimeoutMs, log } = this.#options
    const startedMs = performance.now()
    const nowMs = this.#options.nowMs()
    await makeBase({ driver, guestImage, template, shape, nowMs, bootTimeoutMs, signal: this.#stop.signal })
    const duration_ms = Math.round(performance.now() - startedMs)
    log.info({ op: 'base', outcome: 'made', template: template.digest, shape: shapeName(shape), duration_ms })
    await this.#evict(template)
  }

  async #evict(template: BaseTemplate): Promise<void> {
    const shapes = await listBases(template.folder)
    for (const shape of shapes.slice(maxBasesPerTemplate)) await this.#remove(template, shape, 'evicted')
  }

  async #remove(
    { folder, digest }: Pick<BaseTemplate, 'folder' | 'digest'>,
    shape: Shape,
    outcome: 'evicted' | 'pruned',
  ): Promise<void> {
    await removeBase(join(basesFolder(folder), shapeName(shape)))
    this.#options.log.info({ op: 'base', outcome, template: digest, shape: shapeName(shape) })
  }
}
