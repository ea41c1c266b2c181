import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLayer, emptyLayer, layerBytes, layerOver } from '../src/disks/index.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'space-disks-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

function qemuImg(...args: string[]): string {
  return execFileSync('qemu-img', args, { encoding: 'utf8' })
}

describe('an empty qcow2 layer', () => {
  for (const [name, bytes] of [
    ['8 GiB', 8 * 2 ** 30],
    ['an odd number of sectors', 3 * 2 ** 29 + 512],
    ['5 TiB, whose L1 table needs two clusters', 5 * 2 ** 40],
  ] as const)
    it(`of ${name} is clean in QEMU's own eyes`, async () => {
      const path = join(folder, `${bytes}.qcow2`)
      await createLayer(path, bytes)
      expect(qemuImg('check', path)).toContain('No errors were found')
      const info = JSON.parse(qemuImg('info', '--output=json', path)) as Record<string, unknown>
      expect(info).toMatchObject({ format: 'qcow2', 'virtual-size': bytes, 'cluster-size': 65536 })
      expect(info).not.toHaveProperty('backing-filename')
    })

  it('is refused for sizes no disk can have', () => {
    for (const bytes of [0, -512, 100, 1.5, Number.NaN, 17 * 2 ** 40])
      expect(() => emptyLayer(bytes)).toThrow(RangeError)
  })

  it('never replaces a file that is there', async () => {
    const path = join(folder, 'taken')
    await writeFile(path, 'mine')
    await expect(createLayer(path, 2 ** 30)).rejects.toMatchObject({ code: 'EEXIST' })
  })

  it('takes writes and keeps the base as it is', async () => {
    const base = join(folder, 'base.raw')
    await writeFile(base, Buffer.alloc(1 << 20, 'a'))
    await truncate(base, 8 << 20)
    const chain = await layerOver({ base, frozen: [] }, join(folder, 'one.qcow2'))
    const options = `driver=qcow2,file.filename=${chain.writable},backing.driver=raw,backing.file.filename=${base}`
    execFileSync('qemu-io', ['--image-opts', options, '-c', 'read -P 97 0 64k', '-c', 'write -P 98 4k 4k'])
    const read = execFileSync(
      'qemu-io',
      ['--image-opts', options, '-c', 'read -P 98 4k 4k', '-c', 'read -P 97 8k 4k'],
      {
        encoding: 'utf8',
      },
    )
    expect(read).not.toContain('failed')
    expect((await stat(base)).size).toBe(8 << 20)
  })

  it('is as large as the template it lies on, also as the second one', async () => {
    const base = join(folder, 'base2.raw')
    await writeFile(base, '')
    await truncate(base, 3 * 2 ** 30)
    const first = await layerOver({ base, frozen: [] }, join(folder, 'l1'))
    const second = await layerOver({ base, frozen: [first.writable] }, join(folder, 'l2'))
    expect(second.frozen).toEqual([first.writable])
    expect(JSON.parse(qemuImg('info', '--output=json', second.writable))).toMatchObject({
      'virtual-size': 3 * 2 ** 30,
    })
  })
})

describe('the size of a layer', () => {
  it('is passed on from layer to layer, also where it is more than the template', async () => {
    const base = join(folder, 'base3.raw')
    await writeFile(base, '')
    await truncate(base, 2 ** 30)
    const grown = join(folder, 'grown')
    await createLayer(grown, 2 ** 32)
    const next = await layerOver({ base, frozen: [grown] }, join(folder, 'after'))
    expect(await layerBytes(next.writable)).toBe(2 ** 32)
  })

  it('is not believed from a file that is no layer, or tells an impossible one', async () => {
    const forged = emptyLayer(2 ** 30)
    for (const [name, bytes] of [
      ['short', Buffer.from('QFI')],
      ['other', Buffer.alloc(65536)],
      ['huge', Buffer.concat([forged.subarray(0, 24), Buffer.alloc(8, 0xff), forged.subarray(32)])],
      ['zero', Buffer.concat([forged.subarray(0, 24), Buffer.alloc(8), forged.subarray(32)])],
    ] as const) {
      await writeFile(join(folder, name), bytes)
      await expect(layerBytes(join(folder, name))).rejects.toMatchObject({ code: 'not_a_layer' })
    }
  })
})
