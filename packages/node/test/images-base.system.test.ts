import { stat } from 'node:fs/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { imageDigest } from '../src/images/image-digest.ts'
import { loadGuestImage, loadHostFacts, type Template, templateStore } from '../src/images/index.ts'
import { runProgram } from '../src/images/program.ts'
import type { GuestImage } from '../src/machines/machine.ts'

const home = { home: process.env['SPACE_TEST_HOME'] ?? '/var/lib/space-dev' }

describe('the base template', () => {
  let base: Template
  beforeAll(async () => {
    const found = await templateStore(home).resolve('base')
    if (found === undefined)
      throw new TypeError(`there is no base template in ${home.home}: npm test makes it`)
    base = found
  })

  test('is also seed:latest, and its digest is that of its content', async () => {
    expect(base.tags).toEqual(expect.arrayContaining(['base:latest', 'seed:latest']))
    expect(await imageDigest(base.rootImage, base.recipeHash)).toBe(base.digest)
  })

  test('takes at most 600 MB, looks 8 GiB large, and nobody can write it', async () => {
    const { size, mode, blocks } = await stat(base.rootImage)
    expect(blocks * 512).toBeLessThanOrEqual(600e6)
    expect(base.sizeBytes).toBe(blocks * 512)
    expect(size).toBe(8 * 1024 ** 3)
    expect(mode & 0o222).toBe(0)
  })

  test('needs no check, no zeroing in the background, and reserves no block', async () => {
    await runProgram('e2fsck', ['-f', '-n', base.rootImage])
    const told = (await runProgram('dumpe2fs', [base.rootImage])).toString()
    expect(told).toMatch(/Filesystem state: +clean/)
    expect(told).toMatch(/Reserved block count: +0\n/)
    expect(told).toMatch(/Maximum mount count: +-1\n/)
    const groups = told.split(/^Group \d+:/m).slice(1)
    const withInodes = groups.filter((group) => /Inode table at/.test(group))
    expect(withInodes.length).toBeGreaterThan(60)
    for (const group of withInodes.slice(0, -1)) expect(group.slice(0, 200)).toContain('ITABLE_ZEROED')
  })

  test('holds every program it promises', async () => {
    const programs =
      'node npm npx python3 python pip3 git curl gcc make sudo ps ip openssl bash less modprobe'.split(' ')
    const folders = ['/usr/local/bin', '/usr/bin', '/usr/sbin']
    const names = new Set((await Promise.all(folders.map((folder) => list(base, folder)))).flat())
    expect(programs.filter((program) => !names.has(program))).toEqual([])
    expect(await list(base, '/usr/lib/python3.11/venv')).toContain('__init__.py')
    expect(await list(base, '/usr/lib/python3.11/ensurepip')).toContain('__init__.py')
    expect(await list(base, '/etc/ssl/certs')).toContain('ca-certificates.crt')
  })

  test('has the user every command runs as, who may become root', async () => {
    expect(await read(base, '/etc/passwd')).toMatch(/^user:x:1000:1000:[^:]*:\/home\/user:\/bin\/bash$/m)
    expect(await read(base, '/etc/sudoers.d/user')).toBe('user ALL=(ALL) NOPASSWD: ALL\n')
    expect(await inode(base, '/etc/sudoers.d/user')).toMatch(/Mode: +0440\b/)
    expect(await inode(base, '/home/user')).toMatch(/User: +1000 +Group: +1000\b/)
    expect(await inode(base, '/usr/bin/sudo')).toMatch(/Mode: +04755\b/)
    expect(await inode(base, '/etc/space/wake.d')).toMatch(/User: +0 /)
  })

  test('leaves out manuals, other languages and package lists', async () => {
    for (const folder of [
      '/usr/share/man',
      '/usr/share/locale',
      '/usr/share/info',
      '/var/lib/apt/lists',
      '/var/cache/apt/archives',
    ])
      expect(
        (await list(base, folder)).filter((name) => !/^(lock|partial|auxfiles|dir|man\d)$/.test(name)),
      ).toEqual([])
    expect(await list(base, '/usr/share/doc/git')).toEqual([])
  })

  test('carries no identity, no log and nothing of the host it was made on', async () => {
    expect(await read(base, '/etc/machine-id')).toBe('')
    expect((await list(base, '/etc/ssh')).filter((name) => name.startsWith('ssh_host_'))).toEqual([])
    expect(await read(base, '/etc/hostname')).toBe('sandbox\n')
    expect(await read(base, '/etc/resolv.conf')).toBe('nameserver 169.254.0.22\n')
    expect(await list(base, '/etc/apt/sources.list.d')).toEqual([])
    expect(await read(base, '/etc/apt/sources.list')).toMatch(
      /^(deb http:\/\/deb\.debian\.org\/\S+ bookworm\S* main\n){3}$/,
    )
    expect(await list(base, '/etc/apt/apt.conf.d')).not.toContain('99mmdebstrap')
    expect(await list(base, '/tmp')).toEqual([])
    expect(await list(base, '/var/log/apt')).toEqual([])
  })
})

describe('the guest image', () => {
  let image: GuestImage
  beforeAll(async () => {
    image = await loadGuestImage(home)
  })

  test('has all modules of its kernel with their index on the second drive', async () => {
    const release = `/${image.kernelRelease}`
    const drive = { rootImage: image.modulesDrive }
    const names = await list(drive, release)
    for (const name of ['modules.dep', 'modules.dep.bin', 'modules.alias.bin', 'kernel'])
      expect(names).toContain(name)
    const needs = await read(drive, `${release}/modules.dep`)
    for (const module of ['overlay', 'fuse', 'tun', 'nf_tables', 'bridge', 'veth'])
      expect(needs).toContain(`/${module}.ko:`)
    await runProgram('e2fsck', ['-f', '-n', image.modulesDrive])
  })

  test('can be changed by nobody', async () => {
    for (const file of [image.vmlinux, image.initramfs, image.modulesDrive])
      expect((await stat(file)).mode & 0o222).toBe(0)
  })

  test('comes with the measured rate of the time stamp counter', async () => {
    expect((await loadHostFacts(home))?.tscKhz).toBeGreaterThan(400_000)
  })
})

/** Names in a folder of an image; nothing is mounted. Empty when there is no such folder. */
async function list(image: { readonly rootImage: string }, folder: string): Promise<string[]> {
  const told = await debugfs(image, `ls -p ${folder}`)
  // /<inode>/<mode>/<uid>/<gid>/<name>/<size>/
  const names = told.split('\n').map((line) => line.split('/')[5] ?? '')
  return names.filter((name) => !['', '.', '..'].includes(name))
}

async function read(image: { readonly rootImage: string }, path: string): Promise<string> {
  return await debugfs(image, `cat ${path}`)
}

async function inode(image: { readonly rootImage: string }, path: string): Promise<string> {
  return await debugfs(image, `stat ${path}`)
}

async function debugfs({ rootImage }: { readonly rootImage: string }, request: string): Promise<string> {
  return (await runProgram('debugfs', ['-R', request, rootImage])).toString()
}
