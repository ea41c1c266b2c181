import type { LifecycleLimits, SandboxEvent } from '@space/core'
import type { Clock } from '../clock.ts'
import { getSandbox } from '../store/sandboxes.ts'
import type { SandboxRow } from '../store/schema.ts'
import type { Store } from '../store/store.ts'
import type { Bell } from './bell.ts'
import { changeSandbox, type ObservedColumns } from './change.ts'

/** Puts events through sandboxes, each in a transaction of its own, and tells who waits. */
export class Lifecycle {
  readonly store: Store
  readonly clock: Clock
  readonly limits: LifecycleLimits
  readonly bell: Bell

  constructor(store: Store, clock: Clock, limits: LifecycleLimits, bell: Bell) {
    this.store = store
    this.clock = clock
    this.limits = limits
    this.bell = bell
  }

  /** Applies an event; `also` is written in the same transaction. Undefined when there is no such sandbox. */
  async apply(
    sandboxId: string,
    event: SandboxEvent,
    observed: ObservedColumns = {},
    also?: Parameters<Store['write']>[0],
  ): Promise<SandboxRow | undefined> {
    const change = await this.store.write(async (db) => {
      await also?.(db)
      const before = await getSandbox(db, sandboxId)
      if (!before) return undefined
      return await changeSandbox(db, before, event, this.clock.nowMs(), this.limits, observed)
    })
    this.bell.ring(sandboxId)
    if (change?.asked) this.bell.asked()
    return change?.row
  }
}
