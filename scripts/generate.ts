/**
 * `npm run generate`: everything that is made from something else and committed: TypeScript from the wire contracts,
 * and the configuration page from the table of variables. With `--check` nothing is written; a difference fails.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { variables } from '../packages/contract/src/variables.ts'

const root = join(import.meta.dirname, '..')
const generatedCode = join('packages', 'contract', 'src', 'gen')
const configurationPage = join('docs', 'configuration.md')

if (process.argv.includes('--check')) check()
else {
  rmSync(join(root, generatedCode), { recursive: true, force: true })
  generateCode(root)
  writeFileSync(join(root, configurationPage), configuration())
}

function check(): void {
  const scratch = mkdtempSync(join(tmpdir(), 'space-generate-'))
  try {
    for (const name of ['proto', 'buf.yaml', 'buf.gen.yaml'])
      cpSync(join(root, name), join(scratch, name), { recursive: true })
    generateCode(scratch)
    const stale = [
      ...differences(join(scratch, generatedCode), join(root, generatedCode)),
      ...(read(join(root, configurationPage)) === configuration() ? [] : [configurationPage]),
    ]
    if (stale.length > 0) {
      console.error(`Out of date: ${stale.join(', ')}. Run \`npm run generate\` and commit the result.`)
      process.exitCode = 1
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

function generateCode(folder: string): void {
  const buf = join(root, 'node_modules', '.bin', 'buf')
  const done = spawnSync(buf, ['generate'], { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] })
  if (done.status !== 0) throw new Error('buf generate failed: see above')
}

function differences(fresh: string, committed: string): string[] {
  const names = new Set([...files(fresh), ...files(committed)])
  return [...names]
    .filter((name) => read(join(fresh, name)) !== read(join(committed, name)))
    .map((name) => join(generatedCode, name))
}

function files(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function configuration(): string {
  const rows = variables.map(
    ({ name, default: value, unit, meaning }) =>
      `| \`${name}\` | ${value === '' ? '–' : `\`${value}\``} | ${unit.replaceAll('|', '\\|')} | ${meaning} |`,
  )
  return `# Configuration

Every setting is an environment variable. This page is generated from the one table in
\`packages/contract/src/variables.ts\` (\`npm run generate\`).

| variable | default | unit | meaning |
|---|---|---|---|
${rows.join('\n')}
`
}
