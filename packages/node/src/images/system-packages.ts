import { noApt } from './apt.ts'
import { SetUpError } from './errors.ts'
import { missingPackages } from './host-programs.ts'
import { findProgram, runProgram } from './program.ts'

/** How long to wait for another package manager to finish. */
const lockTimeoutSeconds = 300

/** The one command that installs packages, as a person would type it. */
export function installCommand(packages: readonly string[]): string {
  const sudo = process.getuid?.() === 0 ? '' : 'sudo '
  return `${sudo}apt-get install --yes --no-install-recommends ${packages.join(' ')}`
}

/**
 * Installs the packages whose programs are missing. `no_apt` where there is no apt, `not_root` where they cannot be
 * installed; both say what to do.
 */
export async function installSystemPackages(
  progress: (message: string, fraction?: number) => void,
  signal?: AbortSignal,
): Promise<void> {
  const packages = await missingPackages()
  if (packages.length === 0) return
  if ((await findProgram('apt-get')) === undefined) throw noApt()
  if (process.getuid?.() !== 0)
    throw new SetUpError(
      'not_root',
      `Missing on this host: ${packages.join(', ')}.`,
      installCommand(packages),
    )
  const run = { env: { DEBIAN_FRONTEND: 'noninteractive' }, ...(signal && { signal }) }
  progress('reading the package lists', 0.05)
  // A foreign source that cannot be read is not ours to judge: the install says whether ours could.
  await runProgram('apt-get', ['--quiet=2', 'update'], run).catch((error: unknown) => {
    signal?.throwIfAborted()
    if (!(error instanceof SetUpError)) throw error
  })
  progress(`installing ${packages.join(', ')}`, 0.2)
  const lock = ['-o', `DPkg::Lock::Timeout=${lockTimeoutSeconds}`]
  await runProgram('apt-get', [...lock, 'install', '--yes', '--no-install-recommends', ...packages], {
    ...run,
    onLine: (line) => {
      const unpacked = /^(?:Unpacking|Setting up) (\S+)/.exec(line)?.[1]
      if (unpacked !== undefined) progress(unpacked, line.startsWith('U') ? 0.5 : 0.8)
    },
  })
  const still = await missingPackages()
  if (still.length > 0)
    throw new SetUpError('program_missing', `Still missing: ${still.join(', ')}.`, installCommand(still))
}
