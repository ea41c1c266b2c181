/**
 * `npm run check`: format, lint, types, dead code, generated files, wire contracts, Go. All run side by side; the
 * output of each is shown only when it fails.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

interface Check {
  readonly title: string
  readonly argv: readonly string[]
  readonly cwd?: string
}

const root = join(import.meta.dirname, '..')
const node = process.execPath
const bin = join(root, 'node_modules', '.bin')

const checks: Check[] = [
  { title: 'format and lint', argv: [join(bin, 'biome'), 'ci', '--max-diagnostics=40', '.'] },
  { title: 'types', argv: [join(bin, 'tsc'), '--noEmit', '-p', '.'] },
  { title: 'dead code', argv: [join(bin, 'knip'), '--no-progress'] },
  { title: 'wire contracts', argv: [join(bin, 'buf'), 'lint'] },
  { title: 'generated files', argv: [node, join(root, 'scripts', 'generate.ts'), '--check'] },
]
if (goIsHere()) {
  checks.push({
    title: 'go format',
    argv: ['sh', '-c', 'unformatted=$(gofmt -l .); echo "$unformatted"; test -z "$unformatted"'],
    cwd: 'guest',
  })
  checks.push({ title: 'go vet', argv: ['go', 'vet', './...'], cwd: 'guest' })
}

const results = await Promise.all(checks.map(run))
for (const { check, ok, output, seconds } of results) {
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${check.title} (${seconds.toFixed(1)} s)`)
  if (!ok) console.log(output)
}
process.exitCode = results.every((result) => result.ok) ? 0 : 1

function run(check: Check): Promise<{ check: Check; ok: boolean; output: string; seconds: number }> {
  const [program = '', ...args] = check.argv
  const started = performance.now()
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    const child = spawn(program, args, {
      cwd: join(root, check.cwd ?? '.'),
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, PATH: `${bin}${delimiter}${process.env['PATH'] ?? ''}` },
    })
    const done = (ok: boolean, extra = '') =>
      resolve({
        check,
        ok,
        output: Buffer.concat(chunks).toString() + extra,
        seconds: (performance.now() - started) / 1000,
      })
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.on('error', (error) => done(false, error.message))
    child.on('close', (code) => done(code === 0))
  })
}

function goIsHere(): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, 'go')))
}
