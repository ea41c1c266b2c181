import { stat } from 'node:fs/promises'
import { findProgram } from './program.ts'

/** A program of the host SPACE runs, and the Debian package that brings it. */
export interface HostProgram {
  /** The program's name on PATH, or the absolute path of a file that is needed as it is. */
  readonly program: string
  readonly package: string
  /** What SPACE does with it. */
  readonly use: string
  /** Arguments that make it tell its version. */
  readonly version?: readonly string[]
}

/** Every program of the host that set-up and node run; `space doctor` checks each, set-up installs what is missing. */
export const hostPrograms: readonly HostProgram[] = [
  {
    program: 'qemu-system-x86_64',
    package: 'qemu-system-x86',
    use: 'runs the microVMs',
    version: ['--version'],
  },
  { program: 'qemu-img', package: 'qemu-utils', use: 'makes disk layers', version: ['--version'] },
  { program: 'ip', package: 'iproute2', use: 'makes network namespaces and taps', version: ['-V'] },
  { program: 'nft', package: 'nftables', use: 'keeps packets in', version: ['--version'] },
  { program: 'setpriv', package: 'util-linux', use: 'takes rights from the VMM', version: ['--version'] },
  { program: 'prlimit', package: 'util-linux', use: 'limits the VMM', version: ['--version'] },
  { program: 'mke2fs', package: 'e2fsprogs', use: 'makes filesystems', version: ['-V'] },
  { program: 'resize2fs', package: 'e2fsprogs', use: 'grows filesystems' },
  { program: 'mmdebstrap', package: 'mmdebstrap', use: 'makes templates', version: ['--version'] },
  { program: 'depmod', package: 'kmod', use: 'indexes kernel modules', version: ['--version'] },
  { program: 'xz', package: 'xz-utils', use: 'unpacks kernels', version: ['--version'] },
  { program: 'tar', package: 'tar', use: 'unpacks npm', version: ['--version'] },
  {
    program: '/usr/share/keyrings/debian-archive-keyring.gpg',
    package: 'debian-archive-keyring',
    use: "checks Debian's signatures",
  },
  {
    program: '/etc/ssl/certs/ca-certificates.crt',
    package: 'ca-certificates',
    use: "checks servers' certificates",
  },
]

/** Where a program lies, or undefined when it is missing. */
export async function locate({ program }: HostProgram): Promise<string | undefined> {
  if (!program.startsWith('/')) return await findProgram(program)
  return (await stat(program).catch(() => undefined)) === undefined ? undefined : program
}

/** The packages that bring what is missing, each once. */
export async function missingPackages(): Promise<string[]> {
  const located = await Promise.all(
    hostPrograms.map(async (each) => [each.package, await locate(each)] as const),
  )
  return [...new Set(located.filter(([, path]) => path === undefined).map(([name]) => name))]
}
