import { access, stat } from 'node:fs/promises'
import type { DiskChain } from '../machines/machine.ts'
import { createLayer } from './qcow2.ts'

/** Frozen layers a chain may have before a machine must be started on fewer. */
export const maxFrozenLayers = 16

/** A new writable layer at `writable` over a template's image, as large as that. */
export async function layerOverTemplate(base: string, writable: string): Promise<DiskChain> {
  return layerOver({ base, frozen: [] }, writable)
}

/** A new writable layer at `writable` over what is there already. */
export async function layerOver(
  below: Pick<DiskChain, 'base' | 'frozen'>,
  writable: string,
): Promise<DiskChain> {
  if (below.frozen.length > maxFrozenLayers)
    throw new RangeError(`more than ${maxFrozenLayers} frozen layers`)
  await createLayer(writable, await virtualBytes(below.base))
  return { base: below.base, frozen: below.frozen, writable }
}

/** Makes the writable layer at a path if there is none. */
export async function ensureLayer(base: string, writable: string): Promise<void> {
  const present = await access(writable).then(
    () => true,
    () => false,
  )
  if (!present) await createLayer(writable, await virtualBytes(base))
}

/** The size a guest sees: that of the raw image below. */
export async function virtualBytes(base: string): Promise<number> {
  return (await stat(base)).size
}

/** Bytes a layer takes on the host's disk. */
export async function allocatedBytes(path: string): Promise<number> {
  return (await stat(path)).blocks * 512
}
