/**
 * Guest memory as VMMs get it: a sealed memfd that holds what a snapshot's memory file holds, mapped private by every
 * machine restored from it, so that the kernel shares its pages and copies those that are written.
 *
 * Why not the file itself: QEMU 7.2 opens guest memory read-write, so the VMM's uid would need write access to a file
 * that other sandboxes map, and the descriptor would stay with the VMM. A memfd with the write, grow and shrink seals
 * gives the same mapping, and no one can change or truncate it ever again. It costs RAM of the size of its data
 * (about 100 MB for a base snapshot), once for all machines of one snapshot.
 *
 * The file of a snapshot is remembered for the next machine; at most `maxKept` are, the least recently used goes. A
 * file goes out of RAM when neither this process nor a machine holds it.
 */
import { fstatSync, ftruncateSync, openSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { copyData } from '../../host/copy.ts'
import { addSeals, createMemfd, Descriptor, getSeals, openToRead, seals } from '../../host/descriptors.ts'
import { errorCode } from '../../host/host-error.ts'
import { MachineError } from '../machine-error.ts'

/** Memory files kept for the next restore. */
const maxKept = 4

/** Each attempt waits up to a fifth of a second in the kernel by itself. */
const maxSealAttempts = 20
const sealRetryMs = 25

const sizeSeals = seals.seal | seals.shrink | seals.grow
const allSeals = sizeSeals | seals.write

interface Kept {
  readonly key: string
  readonly file: Promise<Descriptor>
}

export class MemoryFiles {
  #kept: Kept[] = []

  /** The sealed memory of a snapshot's file; the caller owns the descriptor. */
  async of(path: string, sizeBytes: number): Promise<Descriptor> {
    const info = await stat(path)
    const key = `${info.dev}:${info.ino}:${info.mtimeMs}:${info.size}`
    const present = this.#kept.find((kept) => kept.key === key)
    const chosen = present ?? { key, file: loadMemory(path, sizeBytes) }
    this.#kept = [chosen, ...this.#kept.filter((kept) => kept !== chosen)]
    for (const dropped of this.#kept.splice(maxKept))
      void dropped.file.then(
        (file) => file.close(),
        () => undefined,
      )
    try {
      const file = await chosen.file
      // Closed: it was the least recently used one by the time it was loaded.
      return file.fd < 0
        ? await this.of(path, sizeBytes)
        : new Descriptor(openSync(`/proc/self/fd/${file.fd}`, 'r+'))
    } catch (error) {
      this.#kept = this.#kept.filter((kept) => kept !== chosen)
      throw error
    }
  }

  close(): void {
    for (const { file } of this.#kept.splice(0))
      void file.then(
        (descriptor) => descriptor.close(),
        () => undefined,
      )
  }
}

/**
 * Memory for a machine that boots: all zeroes, its own alone, and therefore mapped shared: a private mapping would hold
 * every page twice, in the file and in the copy. Only its size is sealed. The caller owns the descriptor.
 */
export function emptyMemory(sizeBytes: number): Descriptor {
  const file = createMemfd('space-memory')
  ftruncateSync(file.fd, sizeBytes)
  addSeals(file.fd, sizeSeals)
  return file
}

async function loadMemory(path: string, sizeBytes: number): Promise<Descriptor> {
  using source = openToRead(path)
  const { size } = fstatSync(source.fd)
  if (size !== sizeBytes)
    throw new MachineError('snapshot_unusable', `memory file of ${size} bytes, not ${sizeBytes}`)
  const file = createMemfd('space-memory')
  try {
    ftruncateSync(file.fd, sizeBytes)
    await copyData(source.fd, file.fd, sizeBytes)
    await sealPatiently(file.fd)
    return file
  } catch (error) {
    file.close()
    throw error
  }
}

/**
 * Seals a file that was just written. On a busy host the kernel still holds references to some of its pages and
 * answers EBUSY; they go by themselves.
 */
async function sealPatiently(fd: number): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      addSeals(fd, allSeals)
      return
    } catch (error) {
      if (errorCode(error) !== 'EBUSY' || attempt === maxSealAttempts) throw error
    }
    await delay(sealRetryMs)
  }
}

/** Whether a descriptor a VMM gave back is still memory of this size, and if `fixed`, such that nobody changes. */
export function isMemory(file: Descriptor, sizeBytes: number, fixed: boolean): boolean {
  const wanted = fixed ? allSeals : sizeSeals
  return (getSeals(file.fd) & wanted) === wanted && fstatSync(file.fd).size === sizeBytes
}
