/**
 * From a bzImage, as distributions ship it, to the uncompressed ELF kernel inside, which both VMMs start by its PVH note.
 * The boot header says where the payload lies (boot protocol 2.08 and later):
 *
 *   0x1f1 setup_sects · 0x202 "HdrS" · 0x206 version · 0x248 payload_offset · 0x24c payload_length
 *   payload at (setup_sects + 1) × 512 + payload_offset; its last four bytes are the unpacked size
 */
import { SetUpError } from './errors.ts'
import { unpack } from './unpack.ts'

const maxKernelBytes = 256 * 1024 * 1024
const pvhNoteType = 18

/** The ELF kernel of a bzImage. `kernel_unusable` when there is none, or it cannot be started by PVH. */
export async function extractVmlinux(bzImage: Buffer, signal?: AbortSignal): Promise<Buffer> {
  const vmlinux = await unpack(findPayload(bzImage), maxKernelBytes, signal)
  if (!hasPvhEntry(vmlinux)) throw unusable('it has no PVH entry point')
  return vmlinux
}

/** The compressed payload of a bzImage, as its boot header names it, without the size at its end. */
export function findPayload(bzImage: Buffer): Buffer {
  if (bzImage.length < 0x250 || bzImage.toString('latin1', 0x202, 0x206) !== 'HdrS')
    throw unusable('it is no bzImage')
  if (bzImage.readUInt16LE(0x206) < 0x208) throw unusable('its boot protocol is too old')
  const start = ((bzImage[0x1f1] || 4) + 1) * 512 + bzImage.readUInt32LE(0x248)
  const length = bzImage.readUInt32LE(0x24c)
  if (length < 8 || start + length > bzImage.length) throw unusable('its payload lies outside the file')
  return bzImage.subarray(start, start + length - 4)
}

/** Whether an ELF file holds the Xen note of type 18 that names the 32-bit PVH entry point. */
export function hasPvhEntry(elf: Buffer): boolean {
  if (elf.length < 64 || elf.toString('hex', 0, 5) !== '7f454c4602') return false
  const tableAt = Number(elf.readBigUInt64LE(32))
  const entryBytes = elf.readUInt16LE(54)
  const entries = elf.readUInt16LE(56)
  for (let index = 0; index < entries; index++) {
    const at = tableAt + index * entryBytes
    if (at + 56 > elf.length) return false
    const isNote = elf.readUInt32LE(at) === 4
    if (!isNote) continue
    const start = Number(elf.readBigUInt64LE(at + 8))
    const length = Number(elf.readBigUInt64LE(at + 32))
    if (hasPvhNote(elf.subarray(start, start + length))) return true
  }
  return false
}

function hasPvhNote(notes: Buffer): boolean {
  for (let at = 0; at + 12 <= notes.length; ) {
    const nameBytes = notes.readUInt32LE(at)
    const contentBytes = notes.readUInt32LE(at + 4)
    const isXen = notes.toString('latin1', at + 12, at + 12 + nameBytes) === 'Xen\0'
    if (isXen && notes.readUInt32LE(at + 8) === pvhNoteType) return true
    at += 12 + ((nameBytes + 3) & ~3) + ((contentBytes + 3) & ~3)
  }
  return false
}

function unusable(why: string): SetUpError {
  return new SetUpError(
    'kernel_unusable',
    `The kernel cannot be used: ${why}.`,
    "Unset SPACE_KERNEL to use Debian's linux-image-cloud-amd64, or name a package with CONFIG_PVH.",
  )
}
