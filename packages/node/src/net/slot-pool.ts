/**
 * Slots made ahead, since making one takes about 90 ms. Each number is written down in the registry before anything of
 * it is made, with this SPACE_HOME beside it; what a killed node left pooled or half made is removed at the next start.
 */
import { type ControllerMount, hostControllers } from '../host/cgroups.ts'
import { HostError } from '../host/host-error.ts'
import { defaultUidRange, type UidRange } from '../host/uids.ts'
import { describeSlot, makeSlot, removeSlot, reserveOnKernel, type Slot } from './slot.ts'
import { defaultRegistry, SlotRegistry } from './slot-registry.ts'

export interface SlotPoolOptions {
  /** SPACE_HOME: tells this installation's slots from those of others on the host. */
  readonly home: string
  readonly registry?: string
  readonly uids?: UidRange
  readonly controllers?: readonly ControllerMount[]
}

export class SlotPool {
  readonly controllers: readonly ControllerMount[]
  readonly #home: string
  readonly #range: UidRange
  readonly #registry: SlotRegistry
  readonly #ready: Slot[] = []
  readonly #underWay = new Set<Promise<unknown>>()
  #target = 0
  #filling = false

  constructor(options: SlotPoolOptions) {
    this.#home = options.home
    this.#range = options.uids ?? defaultUidRange
    this.controllers = options.controllers ?? hostControllers()
    this.#registry = new SlotRegistry(options.registry ?? defaultRegistry, this.#range.count)
  }

  /** Removes what an earlier node of this home left without an owner: call it once, before `keep`. */
  async sweep(isAlive: (folder: string, token: string) => boolean): Promise<void> {
    const orphans = this.#registry
      .heldBy(this.#home)
      .filter(({ entry }) => !isAlive(entry.folder, entry.token))
    for (const { number, entry } of orphans) await this.release(this.#describe(number, entry.token))
  }

  /** Keeps so many slots made ahead, in the background. */
  keep(count: number): void {
    this.#target = count
    this.#fill()
  }

  /** A slot for the machine of a folder, written down before this resolves. `full` when the range is used up. */
  async acquire(folder: string, signal?: AbortSignal): Promise<Slot> {
    const slot = this.#ready.shift() ?? (await this.#make(signal))
    this.assign(slot, folder)
    this.#fill()
    return slot
  }

  /** Writes down that the slot's machine lies in another folder from now on. */
  assign(slot: Slot, folder: string): void {
    this.#registry.assign(slot.number, { home: this.#home, token: slot.token, folder: '' }, folder)
  }

  /** Ends and removes all of a slot and frees its number; does nothing when somebody else has the number by now. */
  async release(slot: Slot): Promise<void> {
    if (!this.#registry.holds(slot.number, slot.token)) return
    await removeSlot(slot)
    this.#registry.free(slot.number, slot.token)
  }

  /** Removes the slots that wait. Those handed out stay. */
  async stop(): Promise<void> {
    this.#target = 0
    await Promise.allSettled(this.#underWay)
    await Promise.all(this.#ready.splice(0).map((slot) => this.release(slot)))
  }

  #describe(number: number, token: string): Slot {
    return describeSlot(number, token, this.#range, this.controllers)
  }

  async #make(signal?: AbortSignal): Promise<Slot> {
    const taken = this.#registry.take(this.#home, (number) =>
      reserveOnKernel(this.controllers, String(number)),
    )
    if (taken === undefined) throw new HostError('slot', 'full', 'every uid of the range is in use')
    const slot = this.#describe(taken.number, taken.entry.token)
    try {
      await makeSlot(slot, signal)
      return slot
    } catch (error) {
      await this.release(slot)
      throw error
    }
  }

  /** One at a time: they are made ahead, and whoever waits for one makes his own. */
  #fill(): void {
    if (this.#filling || this.#ready.length >= this.#target) return
    this.#filling = true
    const work = this.#make()
      .then((slot) => {
        this.#ready.push(slot)
        this.#filling = false
        this.#fill()
      })
      .catch(() => {
        // The next acquire makes its own and says what is wrong.
        this.#filling = false
      })
      .finally(() => this.#underWay.delete(work))
    this.#underWay.add(work)
  }
}
