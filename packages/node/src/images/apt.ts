/**
 * The host's package tools, used two ways: to install the programs SPACE runs, and, with folders of their own and the
 * host's mirrors, to fetch Debian packages that are never installed.
 */
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SetUpError } from './errors.ts'
import { findProgram, type ProgramOptions, runProgram } from './program.ts'

/** Debian's release that guests and their kernel come from. */
export const guestSuite = 'bookworm'

const debianKeyring = '/usr/share/keyrings/debian-archive-keyring.gpg'
const suites = [guestSuite, `${guestSuite}-updates`, `${guestSuite}-security`]

/** Lines of a sources.list for the guest's Debian release, from the mirrors this host uses. */
export type AptSources = readonly string[]

/** What Debian itself serves; also what a guest's own sources.list says, whatever mirror built it. */
export const defaultSources: AptSources = [
  `deb http://deb.debian.org/debian ${guestSuite} main`,
  `deb http://deb.debian.org/debian ${guestSuite}-updates main`,
  `deb http://deb.debian.org/debian-security ${guestSuite}-security main`,
]

/**
 * The mirrors this host fetches the guest's release from, so that set-up works behind a company's mirror; Debian's own
 * when the host runs another release.
 */
export async function hostSources(signal?: AbortSignal): Promise<AptSources> {
  if ((await findProgram('apt-get')) === undefined) throw noApt()
  const format = '$(ORIGIN)|$(SUITE)|$(CODENAME)|$(RELEASE)|$(COMPONENT)|$(REPO_URI)'
  const listed = await runProgram('apt-get', ['indextargets', '--format', format, 'Created-By: Packages'], {
    ...(signal && { signal }),
  })
  return mirrorsAmong(listed.toString('utf8'))
}

/** Picks Debian's own main section of each suite out of what `apt-get indextargets` lists. */
export function mirrorsAmong(listed: string): AptSources {
  const found = new Map<string, string>()
  for (const line of listed.split('\n')) {
    const [origin, , , release, component, uri] = line.split('|')
    if (origin !== 'Debian' || component !== 'main' || release === undefined || uri === undefined) continue
    if (suites.includes(release) && !found.has(release))
      found.set(release, `deb ${uri.replace(/\/$/, '')} ${release} main`)
  }
  return found.has(guestSuite) ? suites.flatMap((suite) => found.get(suite) ?? []) : defaultSources
}

/**
 * Fetches the newest version of a package into a folder; answers the file's path. A package that only depends on the
 * real one says by `standsFor` which of its dependencies that is.
 */
export async function fetchPackage(
  sources: AptSources,
  name: string,
  folder: string,
  options: { standsFor?: RegExp; signal?: AbortSignal } = {},
): Promise<string> {
  const { signal } = options
  const apt = await ownAptFolders(sources, join(folder, 'apt'))
  const run: ProgramOptions = { cwd: folder, ...(signal && { signal }) }
  await runProgram('apt-get', [...apt, '--quiet=2', 'update'], run)
  const depends = await runProgram('apt-cache', [...apt, 'depends', '--important', name], run)
  const real = options.standsFor?.exec(depends.toString('utf8'))?.[1] ?? name
  await runProgram('apt-get', [...apt, '--quiet=2', 'download', real], run)
  const file = (await readdir(folder)).find((entry) => entry.startsWith(`${real}_`) && entry.endsWith('.deb'))
  if (file === undefined)
    throw new SetUpError('download_corrupt', `apt-get fetched no ${real}.`, 'Try again: space up')
  return join(folder, file)
}

/** Options that give apt state of its own in a folder, so that the host's lists and locks are left alone. */
async function ownAptFolders(sources: AptSources, folder: string): Promise<string[]> {
  for (const sub of ['state/lists/partial', 'cache/archives/partial'])
    await mkdir(join(folder, sub), { recursive: true })
  await writeFile(join(folder, 'status'), '')
  const signed = sources.map((line) => line.replace(/^deb /, `deb [signed-by=${debianKeyring}] `))
  await writeFile(join(folder, 'sources.list'), `${signed.join('\n')}\n`)
  const settings = {
    'Dir::State': join(folder, 'state'),
    'Dir::State::status': join(folder, 'status'),
    'Dir::Cache': join(folder, 'cache'),
    'Dir::Etc::sourcelist': join(folder, 'sources.list'),
    'Dir::Etc::sourceparts': '-',
    'APT::Architecture': 'amd64',
    'APT::Sandbox::User': 'root',
    'Acquire::Languages': 'none',
    'Acquire::Retries': '3',
  }
  return Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
}

/** The error of a host without apt. */
export function noApt(): SetUpError {
  return new SetUpError(
    'no_apt',
    'This system has no apt: SPACE sets itself up on Debian and its relatives.',
    'Run SPACE on Debian 12 or newer, or Ubuntu 22.04 or newer.',
  )
}
