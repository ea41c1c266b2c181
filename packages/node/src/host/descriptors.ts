import { closeSync, constants, openSync } from 'node:fs'
import { check, libc } from './libc.ts'

const mfdCloexec = 0x1
const mfdAllowSealing = 0x2
const fAddSeals = 1033
const fGetSeals = 1034
const seekData = 3
const seekHole = 4
const ficlone = 0x40049409

/** Seals of a memfd: what can never be done to it again, by anyone. */
export const seals = { seal: 0x1, shrink: 0x2, grow: 0x4, write: 0x8 } as const

/** An open descriptor that closes itself when its owner's scope ends. Closing twice is fine. */
export class Descriptor {
  #fd: number

  constructor(fd: number) {
    this.#fd = fd
  }

  /** The number; -1 once closed. */
  get fd(): number {
    return this.#fd
  }

  close(): void {
    if (this.#fd < 0) return
    closeSync(this.#fd)
    this.#fd = -1
  }

  [Symbol.dispose](): void {
    this.close()
  }
}

/** Opens a file for reading without following a link in its last component. */
export function openToRead(path: string): Descriptor {
  return new Descriptor(openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW))
}

/** Opens an existing file for reading and writing without following a link in its last component. */
export function openToWrite(path: string): Descriptor {
  return new Descriptor(openSync(path, constants.O_RDWR | constants.O_NOFOLLOW))
}

/** Creates a file that did not exist, write-only, readable by root alone. EEXIST when it did. */
export function createFile(path: string): Descriptor {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  return new Descriptor(openSync(path, flags, 0o600))
}

/** An anonymous file in memory that takes seals. */
export function createMemfd(name: string): Descriptor {
  return new Descriptor(check('memfd_create', libc.memfdCreate(name, mfdCloexec | mfdAllowSealing)))
}

/** Seals a memfd; `mask` is a sum of `seals`. */
export function addSeals(fd: number, mask: number): void {
  check('fcntl F_ADD_SEALS', libc.fcntl(fd, fAddSeals, mask))
}

/** The seals of a descriptor, 0 for a file that cannot have any. */
export function getSeals(fd: number): number {
  return Math.max(0, Number(libc.fcntl(fd, fGetSeals, 0)))
}

export interface Extent {
  readonly start: number
  readonly end: number
}

/** The parts of a file that hold data, in order, by SEEK_DATA and SEEK_HOLE. Moves the descriptor's offset. */
export function* dataExtents(fd: number, sizeBytes: number): Generator<Extent> {
  let at = 0
  while (at < sizeBytes) {
    const start = Number(libc.lseek(fd, at, seekData))
    if (start < 0) return
    const end = Math.min(sizeBytes, check('lseek SEEK_HOLE', libc.lseek(fd, start, seekHole)))
    yield { start, end }
    at = end
  }
}

/** Shares all blocks of one file with an empty one (xfs, btrfs); false where the filesystem cannot. */
export function tryReflink(from: number, to: number): boolean {
  return Number(libc.syscall(16, to, ficlone, from, 0)) === 0
}

/**
 * Marks every descriptor of this process from 3 on close-on-exec, so that what its own parent leaked into it does not
 * reach a program it starts. What is handed to a program on purpose is copied and not affected.
 */
export function keepDescriptorsHere(): void {
  check('close_range', libc.syscall(436, 3, 0xffffffff, 4, 0))
}
