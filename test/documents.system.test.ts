import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Server } from './server.ts'

const root = join(import.meta.dirname, '..')
let server: Server

beforeAll(async () => {
  server = await Server.start()
})
afterAll(async () => {
  await server?.close()
})

/** The ```sh blocks of a page in their order, as one script. ``` blocks without a language are not run. */
function script(page: string): string {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block).join('\n')
}

async function bash(commands: string): Promise<{ code: number; output: string }> {
  const folder = join(server.home, 'bin')
  mkdirSync(folder, { recursive: true })
  // `npx space` as on a user's machine, without npm's own start-up a dozen times over.
  writeFileSync(
    join(folder, 'npx'),
    `#!/bin/sh\nshift\nexec node ${root}/packages/cli/bin/space.mjs "$@"\n`,
    {
      mode: 0o755,
    },
  )
  const child = spawn('bash', ['-euo', 'pipefail', '-c', commands], {
    cwd: root,
    env: { ...process.env, ...server.env, PATH: `${folder}:${process.env['PATH']}` },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
  const [code] = (await once(child, 'close')) as [number | null]
  rmSync(folder, { recursive: true })
  return { code: code ?? -1, output: Buffer.concat(chunks).toString() }
}

test.each([
  ['README.md', /hello/],
  ['docs/installation.md', /6\.\d+/],
  ['docs/first-sandbox.md', /good morning|Z29vZCBtb3JuaW5n|process_exited/],
])('every snippet of %s does what the page says', async (page, expected) => {
  const commands = script(page)
  expect(commands.length).toBeGreaterThan(20)
  const { code, output } = await bash(commands)
  expect(output).toMatch(expected)
  expect(code, output).toBe(0)
})

test('examples/first_sandbox.py runs with the standard library alone', async () => {
  const { code, output } = await bash('python3 -I -S examples/first_sandbox.py')
  expect(output).toMatch(/hello from 6\./)
  expect(output).toMatch(/exit code 0/)
  expect(code, output).toBe(0)
})
