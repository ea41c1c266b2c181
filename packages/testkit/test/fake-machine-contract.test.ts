import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DiskChain, MachineSpec } from '@space/node/machine'
import { FakeHost, fakeDriver } from '@space/testkit'
import { machineContract } from '@space/testkit/machine-contract'

machineContract('fake', async () => {
  const home = await mkdtemp(join(tmpdir(), 'space-fake-contract-'))
  const host = new FakeHost()
  const folder = (kind: string) => mkdtemp(join(home, `${kind}-`))

  async function specOver(disk: Pick<DiskChain, 'base' | 'frozen'>): Promise<MachineSpec> {
    const own = await folder('machine')
    return {
      folder: own,
      sandboxId: 'sbxcontract',
      shape: { vcpus: 1, memoryMib: 256 },
      guestImage: {
        vmlinux: '',
        initramfs: '',
        modulesDrive: '',
        kernelRelease: '6.1.0-fake',
        digest: 'fake',
      },
      disk: { ...disk, writable: join(own, 'disk') },
    }
  }

  return {
    bootTimeoutMs: 10_000,
    driver: async () => fakeDriver(host),
    spec: () => specOver({ base: join(home, 'root.ext4'), frozen: [] }),
    specOver,
    async saveTarget() {
      const own = await folder('snapshot')
      return { folder: own, nextWritable: join(own, 'next-disk') }
    },
    async kill(machine) {
      host.machine(machine.folder)?.end({ reason: 'vmm_killed', detail: 'by a test' })
    },
    leftovers: async (of) => (host.machine(of) === undefined ? [] : ['machine']),
    async close() {
      await host.close()
      await rm(home, { recursive: true, force: true })
    },
  }
})
