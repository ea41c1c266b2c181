/**
 * `npm run dev`: serves, and starts the servers again whenever a source file is saved. Sandboxes go on meanwhile: the
 * new servers find them again. A start that fails waits for the next save.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, watch } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const entry = join(root, 'packages', 'cli', 'src', 'main.ts')
const settleMs = 200

let child: ChildProcess | undefined
let first = true
let ending = false
let restarting = false
let timer: NodeJS.Timeout | undefined

for (const name of readdirSync(join(root, 'packages'))) {
  const source = join(root, 'packages', name, 'src')
  if (existsSync(source))
    watch(source, { recursive: true }, (_event, file) => {
      if (file === null || !/\.(ts|json)$/.test(file)) return
      clearTimeout(timer)
      timer = setTimeout(() => restart(join('packages', name, 'src', file)), settleMs)
    })
}
process.on('SIGINT', () => end('SIGINT'))
process.on('SIGTERM', () => end('SIGTERM'))
start()

function start(): void {
  const options = first ? [] : ['--yes', '--no-first']
  first = false
  const started = spawn(process.execPath, [entry, 'up', ...options, ...process.argv.slice(2)], {
    stdio: 'inherit',
  })
  child = started
  started.on('exit', (code, signal) => {
    if (child !== started) return
    child = undefined
    if (ending || code === 0) process.exit(code ?? 0)
    console.error(`dev: the servers ended (${signal ?? `exit code ${code}`}); waiting for a file to be saved`)
  })
}

function restart(file: string): void {
  console.error(`dev: ${file} was saved, starting again`)
  const old = child
  child = undefined
  if (old === undefined) {
    // One that is still ending starts the next one itself.
    if (!restarting) start()
    return
  }
  restarting = true
  old.once('exit', () => {
    restarting = false
    start()
  })
  old.kill('SIGTERM')
}

function end(signal: NodeJS.Signals): void {
  ending = true
  if (child === undefined) process.exit(0)
  // A terminal has sent SIGINT to the servers already.
  if (signal !== 'SIGINT') child.kill(signal)
}
