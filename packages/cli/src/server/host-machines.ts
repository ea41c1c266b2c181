import { loadGuestImage, loadHostFacts, qemuDriver, templateStore } from '@space/node'
import { CliFailure } from '../failure.ts'
import type { Settings } from '../settings/settings.ts'
import type { HostMachines } from './composition.ts'

/** The VMM of this host with the image and templates the set-up made. Throws where the set-up is not done. */
export async function openHostMachines(settings: Settings): Promise<HostMachines> {
  const { home } = settings
  if (settings.machine === 'firecracker')
    throw new CliFailure('SPACE_MACHINE=firecracker: this release runs microVMs with QEMU alone', {
      code: 'host_unsupported',
      remedy: 'unset SPACE_MACHINE',
    })
  const guestImage = await loadGuestImage({ home })
  const facts = await loadHostFacts({ home })
  const driver = await qemuDriver({ home, tscKhz: facts?.tscKhz ?? 0 })
  return { driver, guestImage, templates: templateStore({ home }) }
}
