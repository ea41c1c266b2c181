import { createHash } from 'node:crypto'
import { mkdir, open, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { GuestImage } from '@space/node'

const mib = 2 ** 20
const diskMib = 8_192

/** Digest of the one template of a fake SPACE. */
export const fakeTemplateDigest: string = `sha256:${createHash('sha256').update('the fake template').digest('hex')}`

/** What fake machines boot with: nothing. */
export const fakeGuestImage: GuestImage = {
  vmlinux: '/none',
  initramfs: '/none',
  modulesDrive: '/none',
  kernelRelease: '6.1.0-fake',
  digest: 'fake',
}

/** Puts a `base` template into a SPACE_HOME as its build would: a sparse image nobody reads. */
export async function writeFakeTemplate(home: string): Promise<void> {
  const templates = join(home, 'node', 'templates')
  const folder = join(templates, fakeTemplateDigest.slice('sha256:'.length))
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const image = await open(join(folder, 'root.ext4'), 'w')
  try {
    await image.truncate(diskMib * mib)
  } finally {
    await image.close()
  }
  const template = {
    name: 'base',
    digest: fakeTemplateDigest,
    recipe_hash: 'fake',
    size_bytes: 1,
    disk_mib: diskMib,
    default_shape: { vcpus: 1, memory_mib: 1_024 },
    defaults: { user: 'user', cwd: '/home/user', env: {} },
    created_at: '2026-01-01T00:00:00.000Z',
  }
  await writeFile(join(folder, 'template.json'), JSON.stringify(template))
  await writeFile(join(templates, 'tags.json'), JSON.stringify({ 'base:latest': fakeTemplateDigest }))
}
