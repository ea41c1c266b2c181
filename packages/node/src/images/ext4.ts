import { mkdir, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { runProgram } from './program.ts'

export interface Ext4Request {
  /** The image file to make; it must not be there yet. */
  readonly image: string
  /** A folder whose content, owners, modes and extended attributes become the image's. */
  readonly content: string
  readonly signal?: AbortSignal
  /** `root`: a root drive of `sizeBytes`, sparse. `read-only`: as small as its content, without a journal. */
  readonly kind: 'root' | 'read-only'
  readonly sizeBytes?: number
}

/**
 * Makes an ext4 image from a folder without mounting anything. The image needs no check and no work in the background
 * after its first mount: its inode tables are known to be zero, since the file is new and sparse.
 */
export async function makeExt4(request: Ext4Request): Promise<void> {
  const { image, content, kind, signal } = request
  await mkdir(dirname(image), { recursive: true, mode: 0o700 })
  const size = request.sizeBytes ?? (await readOnlySizeBytes(content))
  await writeFile(image, '', { flag: 'wx', mode: 0o600 })
  try {
    await truncate(image, size)
    const shared = ['-q', '-F', '-t', 'ext4', '-b', '4096', '-m', '0', '-d', content]
    const own =
      kind === 'root'
        ? ['-L', 'root', '-E', 'lazy_itable_init=0,lazy_journal_init=1']
        : [
            '-L',
            'modules',
            '-O',
            '^has_journal,^resize_inode',
            '-N',
            String((await countEntries(content)) + 64),
          ]
    await runProgram('mke2fs', [...shared, ...own, image], signal === undefined ? {} : { signal })
  } catch (error) {
    await rm(image, { force: true })
    throw error
  }
}

/** What a sparse file takes on the disk, in bytes. */
export async function usedBytes(path: string): Promise<number> {
  return (await stat(path)).blocks * 512
}

/** The content in whole blocks, an inode each, and a little for the filesystem's own tables. */
async function readOnlySizeBytes(folder: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const blocks = entry.isFile()
      ? Math.ceil((await stat(join(entry.parentPath, entry.name))).size / 4096)
      : 1
    bytes += (blocks + 1) * 4096
  }
  return Math.ceil((bytes * 1.03 + 4 * 1024 * 1024) / (1024 * 1024)) * 1024 * 1024
}

async function countEntries(folder: string): Promise<number> {
  return (await readdir(folder, { recursive: true })).length
}
