import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { runProgram } from './program.ts'
import { type GoToolchain, goEnvironment } from './toolchain.ts'

const buildFlags = ['-trimpath', '-buildvcs=false', '-ldflags=-s -w -buildid=']

/** Names the agent's build by its sources and flags: 16 hexadecimal digits. */
export async function agentKey(guestFolder: string): Promise<string> {
  const hash = createHash('sha256').update(buildFlags.join('\0'))
  const entries = await readdir(guestFolder, { recursive: true, withFileTypes: true })
  const files = entries
    .filter(
      (entry) => entry.isFile() && /\.(go|s|mod|sum)$/.test(entry.name) && !entry.name.endsWith('_test.go'),
    )
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
  for (const file of files) {
    const content = await readFile(file)
    hash.update(`\0${relative(guestFolder, file)}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex').slice(0, 16)
}

/** An agent that lies built in the cache. */
export interface BuiltAgent {
  readonly key: string
  readonly path: string
}

/** Builds the agent from its sources, unless the cache holds it; only then is Go asked for. */
export async function buildAgent(
  cache: string,
  guestFolder: string,
  findGo: () => Promise<GoToolchain>,
  signal?: AbortSignal,
): Promise<BuiltAgent> {
  const key = await agentKey(guestFolder)
  const path = agentPath(cache, key)
  if (await isThere(path)) return { key, path }
  await mkdir(join(cache, 'agent'), { recursive: true, mode: 0o700 })
  const temporary = `${path}.making-${process.pid}`
  const go = await findGo()
  await runProgram(go.program, ['build', ...buildFlags, '-o', temporary, './cmd/agent'], {
    cwd: guestFolder,
    env: goEnvironment(cache),
    ...(signal && { signal }),
  })
  await rename(temporary, path)
  return { key, path }
}

/** Whether the agent of these sources lies built in the cache. */
export async function agentIsBuilt(cache: string, guestFolder: string): Promise<boolean> {
  return await isThere(agentPath(cache, await agentKey(guestFolder)))
}

function agentPath(cache: string, key: string): string {
  return join(cache, 'agent', key)
}

async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined
}
