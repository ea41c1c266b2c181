/**
 * Writes the "newc" cpio archive the kernel unpacks as its first root. Times, owners and inode numbers are fixed, so the
 * same files always give the same bytes.
 */
export interface CpioFile {
  /** Path in the archive without a leading slash. */
  readonly path: string
  readonly mode: number
  readonly content: Uint8Array
}

const folderBits = 0o040000
const fileBits = 0o100000
const archiveEnd = 'TRAILER!!!'

/** The archive with these files and every folder above them, in the order given. */
export function writeCpio(files: readonly CpioFile[]): Buffer {
  const parts: Buffer[] = []
  const folders = new Set<string>()
  let inode = 1
  for (const file of files) {
    for (const folder of foldersAbove(file.path)) {
      if (folders.has(folder)) continue
      folders.add(folder)
      parts.push(entry(folder, folderBits | 0o755, inode++, new Uint8Array()))
    }
    parts.push(entry(file.path, fileBits | file.mode, inode++, file.content))
  }
  parts.push(entry(archiveEnd, 0, 0, new Uint8Array()))
  return padded(Buffer.concat(parts), 512)
}

function entry(path: string, mode: number, inode: number, content: Uint8Array): Buffer {
  const name = Buffer.from(`${path}\0`, 'utf8')
  const links = mode === 0 ? 1 : (mode & folderBits) === folderBits ? 2 : 1
  const fields = [inode, mode, 0, 0, links, 0, content.length, 0, 0, 0, 0, name.length, 0]
  const header = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`
  return Buffer.concat([padded(Buffer.concat([Buffer.from(header, 'latin1'), name]), 4), padded(content, 4)])
}

function padded(bytes: Uint8Array, unit: number): Buffer {
  const missing = (unit - (bytes.length % unit)) % unit
  return Buffer.concat([bytes, Buffer.alloc(missing)])
}

function foldersAbove(path: string): string[] {
  const names = path.split('/').slice(0, -1)
  return names.map((_, index) => names.slice(0, index + 1).join('/'))
}
