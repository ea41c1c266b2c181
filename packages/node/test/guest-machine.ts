import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FakeHost, type FakeVm, fakeDriver } from '@space/testkit'
import type { Machine } from '../src/machines/machine.ts'

/** A fake machine that was just booted, with its VMM to look at and break. */
export interface BootedFake {
  readonly machine: Machine
  readonly vm: FakeVm
  close(): Promise<void>
}

/** Boots a fake machine in a folder of its own. */
export async function fakeMachine(): Promise<BootedFake> {
  const folder = await mkdtemp(join(tmpdir(), 'space-guest-'))
  const host = new FakeHost()
  const machine = await fakeDriver(host).boot({
    folder,
    sandboxId: 'sbxtest',
    shape: { vcpus: 1, memoryMib: 256 },
    guestImage: { vmlinux: '', initramfs: '', modulesDrive: '', kernelRelease: '', digest: 'fake' },
    disk: { base: '', frozen: [], writable: join(folder, 'disk') },
  })
  const vm = host.machine(folder)
  if (vm === undefined) throw new TypeError('the fake machine is not there')
  return {
    machine,
    vm,
    async close() {
      await host.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
