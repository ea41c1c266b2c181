import { access, stat } from 'node:fs/promises'
import type { DiskChain } from '../machines/machine.ts'
import { createLayer, layerBytes } from './qcow2.ts'

/** Frozen layers a chain may have before a machine must be started on fewer. */
const maxFrozenLayers = 16

/** A new writable layer at `writable` over what is there already, as large as the layer below. */
export async function layerOver(
  below: Pick<DiskChain, 'base' | 'frozen'>,
  writable: string,
): Promise<DiskChain> {
  if (below.frozen.length > maxFrozenLayers)
    throw new RangeError(`more than ${maxFrozenLayers} frozen layers`)
  const top = below.frozen.at(-1)
  await createLayer(writable, top === undefined ? (await stat(below.base)).size : await layerBytes(top))
  return { base: below.base, frozen: below.frozen, writable }
}

/** Makes the layer that follows `current`, as large as that, if there is none at the path yet. */
export async function ensureLayerAfter(current: string, writable: string): Promise<void> {
  const present = await access(writable).then(
    () => true,
    () => false,
  )
  if (!present) await createLayer(writable, await layerBytes(current))
}

/** Bytes a layer takes on the host's disk. */
export async function allocatedBytes(path: string): Promise<number> {
  return (await stat(path)).blocks * 512
}
