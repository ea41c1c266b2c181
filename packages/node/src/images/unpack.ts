import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { SetUpError } from './errors.ts'
import { isLegacyLz4, unpackLegacyLz4 } from './lz4.ts'
import { runProgram } from './program.ts'

/**
 * Unpacks what a kernel's build packs (gzip, zstd, xz, LZ4), told by how it begins; an ELF file is answered as it is.
 * `kernel_unusable` when it is neither, or larger than `maxBytes`.
 */
export async function unpack(packed: Buffer, maxBytes: number, signal?: AbortSignal): Promise<Buffer> {
  if (isLegacyLz4(packed)) return unpackLegacyLz4(packed, maxBytes)
  const magic = packed.toString('hex', 0, 6)
  if (magic.startsWith('7f454c46')) return packed
  if (magic.startsWith('1f8b')) return gunzipSync(packed, { maxOutputLength: maxBytes })
  if (magic.startsWith('28b52ffd')) return zstdDecompressSync(packed, { maxOutputLength: maxBytes })
  if (magic === 'fd377a585a00')
    return await runProgram('xz', ['--decompress', '--stdout', '--memlimit=1GiB'], {
      input: packed,
      maxStdoutBytes: maxBytes,
      ...(signal && { signal }),
    })
  throw new SetUpError(
    'kernel_unusable',
    `The kernel cannot be used: it is packed in an unknown way (${magic}).`,
    "Unset SPACE_KERNEL to use Debian's linux-image-cloud-amd64.",
  )
}
