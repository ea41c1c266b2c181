/**
 * `npm test`: the set-up `npm start` does, then every test, each promise once. `npm run test:full` repeats and lasts as
 * long as the promises say, and leaves its report in docs/reports/. Further arguments go to vitest.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const home = process.env['SPACE_HOME'] ?? '/var/lib/space'
const full = process.argv.includes('--full')
const forwarded = process.argv.slice(2).filter((argument) => argument !== '--full')

const begun = performance.now()
const setUp = await run([join(root, 'packages/cli/src/main.ts'), 'up', '--setup-only', '--yes'])
if (setUp.code !== 0) {
  console.log('\n0 passed, 1 failed')
  process.exit(1)
}
const tests = await run([join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...forwarded], {
  SPACE_TEST_HOME: home,
  SPACE_TEST_TIER: full ? 'full' : 'small',
})
if (full) report(tests.output)
process.exitCode = tests.code

async function run(
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: number; output: string }> {
  const child = spawn(process.execPath, argv, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', full ? 'pipe' : 'inherit', 'inherit'],
  })
  const chunks: Buffer[] = []
  child.stdout?.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    process.stdout.write(chunk)
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code: code ?? 1, output: Buffer.concat(chunks).toString() }
}

function report(output: string): void {
  const day = new Date().toISOString().slice(0, 10)
  const [cpu] = cpus()
  mkdirSync(join(root, 'docs', 'reports'), { recursive: true })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: takes the colours out of a terminal's output
  const text = output.replace(/\u001b\[[0-9;]*m/g, '')
  writeFileSync(
    join(root, 'docs', 'reports', `test-full-${day}.md`),
    `# Full tests, ${day}

${cpus().length} × ${cpu?.model ?? 'unknown CPU'}, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()},
Node.js ${process.versions.node}, ${Math.round((performance.now() - begun) / 60_000)} minutes.

\`\`\`
${text.trim()}
\`\`\`
`,
  )
}
