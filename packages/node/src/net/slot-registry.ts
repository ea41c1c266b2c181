/**
 * One number names all that a machine has on the host: its uid, its network namespace, its control group. The numbers
 * are shared by every SPACE on the host, so they are taken in one host-wide folder under /run, which, like namespaces
 * and control groups, is empty after a reboot:
 *
 *   <registry>/<number>   {home, token, folder}   taken by the SPACE of that home; folder: the machine that has it
 *
 * The random token tells this holder of a number from a later one: whoever clears away by a record of his own frees a
 * number only with its token.
 */
import { randomBytes } from 'node:crypto'
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { errorCode } from '../host/host-error.ts'

export interface SlotEntry {
  /** SPACE_HOME of the holder. */
  readonly home: string
  readonly token: string
  /** Folder of the machine that has the slot, or '' while it is pooled. */
  readonly folder: string
}

export const defaultRegistry = '/run/space/slots'

export class SlotRegistry {
  readonly #folder: string
  readonly #count: number

  constructor(folder: string, count: number) {
    this.#folder = folder
    this.#count = count
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  }

  /** Takes the lowest free number that `usable` accepts, or undefined when none is left. */
  take(home: string, usable: (number: number) => boolean): { number: number; entry: SlotEntry } | undefined {
    const taken = new Set(this.#numbers())
    const entry = { home, token: randomBytes(16).toString('hex'), folder: '' }
    const draft = join(this.#folder, `.${entry.token}`)
    writeFileSync(draft, JSON.stringify(entry), { mode: 0o600 })
    try {
      for (let number = 0; number < this.#count; number += 1)
        if (!taken.has(number) && this.#claim(draft, number, usable)) return { number, entry }
      return undefined
    } finally {
      unlinkSync(draft)
    }
  }

  #claim(draft: string, number: number, usable: (number: number) => boolean): boolean {
    try {
      linkSync(draft, this.#path(number))
    } catch (error) {
      if (errorCode(error) === 'EEXIST') return false
      throw error
    }
    if (usable(number)) return true
    unlinkSync(this.#path(number))
    return false
  }

  /** Who holds a number. */
  read(number: number): SlotEntry | undefined {
    try {
      return parseEntry(readFileSync(this.#path(number), 'utf8'))
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return undefined
      throw error
    }
  }

  /** Writes down which machine has the slot from now on. */
  assign(number: number, entry: SlotEntry, folder: string): SlotEntry {
    const next = { ...entry, folder }
    const draft = join(this.#folder, `.${entry.token}`)
    writeFileSync(draft, JSON.stringify(next), { mode: 0o600 })
    renameSync(draft, this.#path(number))
    return next
  }

  /** Whether the number is still held under this token. */
  holds(number: number, token: string): boolean {
    return this.read(number)?.token === token
  }

  /** Frees the number if it is held under this token. */
  free(number: number, token: string): void {
    if (this.holds(number, token)) rmSync(this.#path(number), { force: true })
  }

  /** All numbers held by one home. */
  heldBy(home: string): { number: number; entry: SlotEntry }[] {
    return this.#numbers().flatMap((number) => {
      const entry = this.read(number)
      return entry?.home === home ? [{ number, entry }] : []
    })
  }

  #numbers(): number[] {
    return readdirSync(this.#folder)
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
  }

  #path(number: number): string {
    return join(this.#folder, String(number))
  }
}

function parseEntry(text: string): SlotEntry | undefined {
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null) return undefined
  const { home, token, folder } = value as Partial<Record<keyof SlotEntry, unknown>>
  if (typeof home !== 'string' || typeof token !== 'string' || typeof folder !== 'string') return undefined
  return { home, token, folder }
}
