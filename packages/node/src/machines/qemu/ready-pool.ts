/**
 * VMMs started ahead. Each waits in `-preconfig` with a slot of its own and knows nothing of a sandbox yet, so it
 * serves any restore of its shape. It lies in a folder of its own under `ready/`, which moves to the machine at a claim.
 */
import { randomUUID } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Shape } from '../machine.ts'
import { moveMachine } from './folder.ts'
import type { QemuHost } from './host-setup.ts'
import { type Launched, launchVmm } from './launch.ts'

/** Pause after a failed start, so that a host that cannot start VMMs is not kept busy with trying. */
const retryMs = 5_000
/** Most VMMs of one shape that may wait. */
export const maxReady = 64

interface Waiting extends Launched {
  readonly folder: string
}

interface Line {
  readonly shape: Shape
  target: number
  readonly waiting: Waiting[]
  filling: Promise<void> | undefined
}

export class ReadyPool {
  readonly #host: QemuHost
  readonly #folder: string
  readonly #lines = new Map<string, Line>()
  readonly #stopping = new AbortController()

  constructor(host: QemuHost, folder: string) {
    this.#host = host
    this.#folder = folder
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  }

  /** Keeps `count` VMMs of a shape waiting; resolves when they do, or when one could not be started. */
  async keep(shape: Shape, count: number): Promise<void> {
    const line = this.#line(shape)
    line.target = Math.min(Math.max(0, count), maxReady)
    await Promise.all(line.waiting.splice(line.target).map((waiting) => this.#discard(waiting)))
    this.#fill(line)
    await line.filling
  }

  /** A waiting VMM of this shape, moved into `folder`; undefined when none waits. */
  claim(shape: Shape, folder: string): Launched | undefined {
    const line = this.#lines.get(keyOf(shape))
    const waiting = line?.waiting.shift()
    if (line === undefined || waiting === undefined) return undefined
    this.#host.slots.assign(waiting.record.slot, folder)
    moveMachine(waiting.folder, folder)
    this.#fill(line)
    return waiting
  }

  /** Ends all that wait. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    for (const line of this.#lines.values()) {
      line.target = 0
      await line.filling
      await Promise.all(line.waiting.splice(0).map((waiting) => this.#discard(waiting)))
    }
  }

  #line(shape: Shape): Line {
    const key = keyOf(shape)
    const line = this.#lines.get(key) ?? { shape, target: 0, waiting: [], filling: undefined }
    this.#lines.set(key, line)
    return line
  }

  #fill(line: Line): void {
    if (line.filling !== undefined || this.#stopping.signal.aborted) return
    line.filling = this.#fillLine(line).finally(() => {
      line.filling = undefined
    })
  }

  async #fillLine(line: Line): Promise<void> {
    while (line.waiting.length < line.target && !this.#stopping.signal.aborted) {
      try {
        this.#watch(line, await this.#start(line.shape))
      } catch {
        // Whoever needs one starts his own and says what is wrong; meanwhile this tries again.
        this.#retryLater(line)
        return
      }
    }
  }

  #retryLater(line: Line): void {
    sleep(retryMs, undefined, { signal: this.#stopping.signal, ref: false }).then(
      () => this.#fill(line),
      () => undefined,
    )
  }

  async #start(shape: Shape): Promise<Waiting> {
    const folder = join(this.#folder, randomUUID())
    const signal = this.#stopping.signal
    const slot = await this.#host.slots.acquire(folder, signal)
    try {
      mkdirSync(folder, { mode: 0o700 })
      return { folder, ...(await launchVmm(this.#host, { folder, slot, shape, incoming: true }, signal)) }
    } catch (error) {
      await this.#host.slots.release(slot)
      rmSync(folder, { recursive: true, force: true })
      throw error
    }
  }

  /** One that dies while it waits is replaced. */
  #watch(line: Line, waiting: Waiting): void {
    line.waiting.push(waiting)
    void waiting.vmm.ended.then(async () => {
      const index = line.waiting.indexOf(waiting)
      if (index < 0) return
      line.waiting.splice(index, 1)
      await this.#discard(waiting)
      this.#retryLater(line)
    })
  }

  async #discard({ vmm, record, folder }: Waiting): Promise<void> {
    await vmm.kill()
    await this.#host.slots.release(record.slot)
    rmSync(folder, { recursive: true, force: true })
  }
}

function keyOf({ vcpus, memoryMib }: Shape): string {
  return `${vcpus}x${memoryMib}`
}
