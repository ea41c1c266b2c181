import { FakeGuest, type SavedGuest } from './guest.ts'
import { guestRoutes } from './service.ts'

/** Boots a fake guest, or continues a saved one. Its port is where a machine connects the host. */
export function startFakeGuest(saved?: SavedGuest): FakeGuest {
  return new FakeGuest(guestRoutes, saved)
}
