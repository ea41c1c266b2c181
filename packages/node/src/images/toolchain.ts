/**
 * The Go that builds the agent: the host's own when it is new enough, else the Go project's build, which is served as a
 * module and checked against Go's checksum database. Fetching a module takes a `go` command: an older one on the host,
 * or Debian's, unpacked for that one call and never installed (docs/adr/0001-go-toolchain.md).
 */
import { chmod, mkdir, readdir, readFile, realpath, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type AptSources, fetchPackage } from './apt.ts'
import { SetUpError } from './errors.ts'
import { findProgram, runProgram } from './program.ts'
import { isErrno, publishFolder } from './publish.ts'

const toolchainVersion = '1.26.8'
const toolchainSum = 'h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM='
const bootstrapPackage = 'golang-1.19-go'

/** A `go` command that is new enough, and the environment to run it in. */
export interface GoToolchain {
  readonly program: string
  readonly version: string
}

/** The newest Go that is here already and satisfies `minimum`, or undefined. Fetches nothing. */
export async function findGo(cache: string, minimum: string): Promise<GoToolchain | undefined> {
  const candidates = [await findProgram('go'), '/usr/local/go/bin/go', ownGo(cache)]
  for (const program of candidates) {
    if (program === undefined) continue
    const version = await goVersion(program)
    if (version !== undefined && isAtLeast(version, minimum)) return { program, version }
  }
  return undefined
}

/** The Go found by `findGo`, or else one brought into the cache. */
export async function prepareGo(
  cache: string,
  sources: AptSources,
  minimum: string,
  options: { progress?: (message: string) => void; signal?: AbortSignal } = {},
): Promise<GoToolchain> {
  const found = await findGo(cache, minimum)
  if (found !== undefined) return found
  if (!isAtLeast(toolchainVersion, minimum))
    throw new SetUpError(
      'host_unsupported',
      `The agent needs Go ${minimum} and set-up brings ${toolchainVersion}.`,
      `Install Go ${minimum} or newer.`,
    )
  await publishFolder(join(cache, 'go', `toolchain-${toolchainVersion}`), async (folder) => {
    const work = join(folder, 'work')
    await mkdir(work)
    const bootstrap = (await findProgram('go')) ?? (await unpackBootstrap(sources, work, options))
    options.progress?.(`fetching Go ${toolchainVersion}`)
    await fetchToolchain(bootstrap, cache, work, folder, options.signal)
    await rm(work, { recursive: true, force: true })
  })
  return { program: ownGo(cache), version: toolchainVersion }
}

/** The environment every `go` call of set-up runs in: its caches in ours, so that nothing is left outside SPACE_HOME. */
export function goEnvironment(cache: string): Record<string, string> {
  const config = process.env['XDG_CONFIG_HOME'] ?? join(process.env['HOME'] ?? '/root', '.config')
  return {
    GOENV: join(config, 'go', 'env'),
    XDG_CONFIG_HOME: join(cache, 'go', 'config'),
    GOPATH: join(cache, 'go', 'path'),
    GOMODCACHE: join(cache, 'go', 'modules'),
    GOCACHE: join(cache, 'go', 'build'),
    GOTOOLCHAIN: 'local',
    GOFLAGS: '-modcacherw',
    GOWORK: 'off',
    CGO_ENABLED: '0',
    GOOS: 'linux',
    GOARCH: 'amd64',
  }
}

/** The lowest Go version the agent's go.mod allows. */
export async function minimumGo(guestFolder: string): Promise<string> {
  const text = await readFile(join(guestFolder, 'go.mod'), 'utf8')
  const version = /^go (\d+(?:\.\d+){1,2})$/m.exec(text)?.[1]
  if (version === undefined)
    throw new SetUpError('recipe_invalid', 'guest/go.mod names no Go version.', 'git checkout guest/go.mod')
  return version
}

/** Compares dotted numbers, missing parts counting as 0. */
export function isAtLeast(version: string, minimum: string): boolean {
  const have = version.split('.').map(Number)
  const want = minimum.split('.').map(Number)
  for (let part = 0; part < 3; part++) {
    const difference = (have[part] ?? 0) - (want[part] ?? 0)
    if (difference !== 0) return difference > 0
  }
  return true
}

function ownGo(cache: string): string {
  return join(cache, 'go', `toolchain-${toolchainVersion}`, 'bin', 'go')
}

/** What the file beside the program says; a `go` that only stands for another is asked. */
async function goVersion(program: string): Promise<string | undefined> {
  try {
    const root = dirname(dirname(await realpath(program)))
    const told =
      (await readFile(join(root, 'VERSION'), 'utf8').catch(() => undefined)) ??
      (await runProgram(program, ['version'], { env: { GOTOOLCHAIN: 'local' } })).toString('utf8')
    return /\bgo(\d+\.\d+(?:\.\d+)?)\b/.exec(told)?.[1]
  } catch (error) {
    if (error instanceof SetUpError || isErrno(error, 'ENOENT')) return undefined
    throw error
  }
}

async function unpackBootstrap(
  sources: AptSources,
  work: string,
  options: { progress?: (message: string) => void; signal?: AbortSignal },
): Promise<string> {
  options.progress?.(`fetching ${bootstrapPackage}, to fetch Go with`)
  const run = options.signal === undefined ? {} : { signal: options.signal }
  const deb = await fetchPackage(sources, bootstrapPackage, work, run)
  await runProgram('dpkg-deb', ['--extract', deb, join(work, 'bootstrap')], run)
  return join(work, 'bootstrap', 'usr', 'lib', 'go-1.19', 'bin', 'go')
}

async function fetchToolchain(
  bootstrap: string,
  cache: string,
  work: string,
  folder: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const module = `golang.org/toolchain@v0.0.1-go${toolchainVersion}.linux-amd64`
  const answer = await runProgram(bootstrap, ['mod', 'download', '-json', module], {
    cwd: work,
    env: { ...goEnvironment(cache), GOMODCACHE: join(work, 'modules') },
    ...(signal && { signal }),
  })
  const { Dir: unpacked, Sum: sum } = JSON.parse(answer.toString('utf8')) as Partial<Record<string, string>>
  if (unpacked === undefined || sum !== toolchainSum)
    throw new SetUpError(
      'download_corrupt',
      `Go ${toolchainVersion} arrived with checksum ${sum}.`,
      'Try again: space up',
    )
  for (const name of await readdir(unpacked)) await rename(join(unpacked, name), join(folder, name))
  // Modules carry no execute bits.
  for (const programs of [join(folder, 'bin'), join(folder, 'pkg', 'tool', 'linux_amd64')])
    for (const name of await readdir(programs)) await chmod(join(programs, name), 0o755)
}
