import { chmod, open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { MachineSnapshot, Shape, SnapshotIdentity } from '@space/node/machine'
import type { SavedGuest } from '../fake-guest/index.ts'

/** What a fake machine's snapshots are bound to. */
export function fakeIdentity(shape: Shape, guestImageDigest: string): SnapshotIdentity {
  return {
    driver: 'fake',
    environment: 'fake',
    vmmVersion: '1',
    deviceSet: 1,
    shape,
    cpuModel: 'fake',
    guestImageDigest,
    tscKhz: 1_000_000,
  }
}

/** Writes the two files of a snapshot, synced and read-only. The memory of a fake guest is its state as JSON. */
export async function writeSnapshot(
  folder: string,
  saved: SavedGuest,
  identity: SnapshotIdentity,
): Promise<MachineSnapshot> {
  const memory = join(folder, 'memory')
  const devices = join(folder, 'devices')
  await writeOnce(memory, JSON.stringify(saved))
  await writeOnce(devices, JSON.stringify(identity))
  return { memory, devices, identity }
}

export async function readSnapshot(snapshot: MachineSnapshot): Promise<SavedGuest> {
  const saved: SavedGuest = JSON.parse(await readFile(snapshot.memory, 'utf8'))
  return saved
}

async function writeOnce(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await chmod(path, 0o444)
}
