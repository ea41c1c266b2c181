/**
 * A SPACE_HOME for one run of the bench: guest image, templates and base snapshots are hard links into the home that
 * is set up (they are never written), everything else is new. It lies beside that home, since links need one disk.
 */
import { constants, copyFile, link, mkdir, mkdtemp, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Makes the home and answers its path; the caller removes it. */
export async function linkedHome(source: string): Promise<string> {
  const home = await mkdtemp(join(dirname(source), 'space-bench-'))
  for (const part of ['images', 'templates', 'cache']) await linkTree(source, home, join('node', part))
  return home
}

async function linkTree(source: string, target: string, path: string): Promise<void> {
  const entries = await readdir(join(source, path), { withFileTypes: true }).catch(() => [])
  await mkdir(join(target, path), { recursive: true, mode: 0o700 })
  for (const entry of entries) {
    const inner = join(path, entry.name)
    if (entry.isDirectory()) await linkTree(source, target, inner)
    else if (entry.isFile()) await linkFile(join(source, inner), join(target, inner))
  }
}

/** Small files that are replaced in place by their owner are copied; the rest is linked. */
async function linkFile(from: string, to: string): Promise<void> {
  if (from.endsWith('.json') || from.endsWith('.txt')) await copyFile(from, to)
  else await link(from, to).catch(async () => await copyFile(from, to, constants.COPYFILE_FICLONE))
}
