import { fstatSync, ftruncateSync, readSync } from 'node:fs'
import { addSeals, createMemfd, type Descriptor, seals } from '../../host/descriptors.ts'
import { printable } from '../../host/printable.ts'

/** What is kept of a VMM's stdout and stderr. */
export const stderrBytes = 64 << 10

/**
 * A file for a VMM's output that cannot grow: a memfd of fixed size with its size sealed, since a hostile VMM could
 * fill a disk through an ordinary one. Writes past the end fail for the VMM and harm nobody.
 */
export function createStderrFile(): Descriptor {
  const file = createMemfd('space-stderr')
  ftruncateSync(file.fd, stderrBytes)
  addSeals(file.fd, seals.grow | seals.shrink | seals.seal)
  return file
}

/** What was written so far, for the log. Control characters are replaced: the text is the VMM's. */
export function readStderr(file: Descriptor): string {
  const info = fstatSync(file.fd)
  if (!info.isFile() || info.size > stderrBytes) return ''
  const bytes = Buffer.alloc(info.size)
  const length = readSync(file.fd, bytes, 0, bytes.length, 0)
  const text = bytes.subarray(0, length).toString('utf8')
  return printable(text.replaceAll('\0', '')).trim()
}
