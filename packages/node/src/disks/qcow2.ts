/**
 * An empty qcow2 layer, written by ourselves: it takes a millisecond instead of the start of `qemu-img`, and its
 * header names no backing file, so that no program ever follows a path out of a file a VMM can write. Which layer lies
 * on which is said by whoever opens them.
 *
 *   cluster 0  header      1  refcount table → 2      2  refcount block (clusters 0 … 3+)      3 …  L1 table, zeroes
 *
 * Format: QEMU's docs/interop/qcow2.txt, version 3, clusters of 64 KiB, refcounts of 16 bits.
 */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

const clusterBits = 16
const clusterBytes = 1 << clusterBits
/** Guest bytes one L1 entry covers: a cluster of 8-byte L2 entries. */
const bytesPerL1Entry = (clusterBytes / 8) * clusterBytes
const headerBytes = 104
/** A refcount block covers 32,768 clusters: enough for the L1 table of any disk below 8 EiB. */
const firstL1Cluster = 3

/** Largest disk a layer is made for. */
export const maxDiskBytes = 16 * 2 ** 40

/** The first bytes of an empty layer of this virtual size; what follows is zero up to `layerBytes`. */
export function emptyLayer(virtualBytes: number): Buffer {
  if (
    !Number.isSafeInteger(virtualBytes) ||
    virtualBytes <= 0 ||
    virtualBytes % 512 !== 0 ||
    virtualBytes > maxDiskBytes
  )
    throw new RangeError(`a disk of ${virtualBytes} bytes cannot be made`)
  const l1Entries = Math.ceil(virtualBytes / bytesPerL1Entry)
  const l1Clusters = Math.ceil((l1Entries * 8) / clusterBytes)
  const layer = Buffer.alloc((firstL1Cluster + l1Clusters) * clusterBytes)
  layer.writeUInt32BE(0x514649fb, 0) // "QFI\xfb"
  layer.writeUInt32BE(3, 4)
  layer.writeUInt32BE(clusterBits, 20)
  layer.writeBigUInt64BE(BigInt(virtualBytes), 24)
  layer.writeUInt32BE(l1Entries, 36)
  layer.writeBigUInt64BE(BigInt(firstL1Cluster * clusterBytes), 40)
  layer.writeBigUInt64BE(BigInt(clusterBytes), 48) // refcount table
  layer.writeUInt32BE(1, 56) // … of one cluster
  layer.writeUInt32BE(4, 96) // refcounts of 2^4 bits
  layer.writeUInt32BE(headerBytes, 100)
  layer.writeBigUInt64BE(BigInt(2 * clusterBytes), clusterBytes) // the one refcount block
  for (let cluster = 0; cluster < firstL1Cluster + l1Clusters; cluster += 1)
    layer.writeUInt16BE(1, 2 * clusterBytes + cluster * 2)
  return layer
}

/** Makes an empty layer at a path that is free, mode 0600. EEXIST when it is taken. */
export async function createLayer(path: string, virtualBytes: number): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  const file = await open(path, flags, 0o600)
  try {
    await file.writeFile(emptyLayer(virtualBytes))
  } finally {
    await file.close()
  }
}
