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
import { HostError } from '../host/host-error.ts'

/** "QFI\xfb" */
const magic = 0x514649fb
const clusterBits = 16
const clusterBytes = 1 << clusterBits
/** Guest bytes one L1 entry covers: a cluster of 8-byte L2 entries. */
const bytesPerL1Entry = (clusterBytes / 8) * clusterBytes
const headerBytes = 104
/** A refcount block covers 32,768 clusters: enough for the L1 table of any disk below 8 EiB. */
const firstL1Cluster = 3

/** Largest disk a layer is made for. */
const maxDiskBytes = 16 * 2 ** 40

/** An empty layer of this virtual size: all its bytes. */
export function emptyLayer(virtualBytes: number): Buffer {
  if (!isDiskSize(virtualBytes)) throw new RangeError(`a disk of ${virtualBytes} bytes cannot be made`)
  const l1Entries = Math.ceil(virtualBytes / bytesPerL1Entry)
  const l1Clusters = Math.ceil((l1Entries * 8) / clusterBytes)
  const layer = Buffer.alloc((firstL1Cluster + l1Clusters) * clusterBytes)
  layer.writeUInt32BE(magic, 0)
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

/**
 * The virtual size a layer's header tells. A VMM may have written it, so only that one number is believed, within the
 * bounds of what is made here; `not_a_layer` otherwise.
 */
export async function layerBytes(path: string): Promise<number> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(32), 0, 32, 0)
    const bytes = Number(buffer.readBigUInt64BE(24))
    if (bytesRead === 32 && buffer.readUInt32BE(0) === magic && isDiskSize(bytes)) return bytes
    throw new HostError('qcow2', 'not_a_layer', path)
  } finally {
    await file.close()
  }
}

function isDiskSize(bytes: number): boolean {
  return Number.isSafeInteger(bytes) && bytes > 0 && bytes % 512 === 0 && bytes <= maxDiskBytes
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
