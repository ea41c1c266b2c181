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

/** Where the agent with this key lies once it is built. */
export function agentPath(cache: string, key: string): string {
  return join(cache, 'agent', key)
}

/** Builds the agent from its sources, unless the cache holds it; answers the binary's path. */
export async function buildAgent(
  cache: string,
  guestFolder: string,
  go: GoToolchain,
  signal?: AbortSignal,
): Promise<string> {
  const path = agentPath(cache, await agentKey(guestFolder))
  if (await agentIsBuilt(cache, guestFolder)) return path
  await mkdir(join(cache, 'agent'), { recursive: true, mode: 0o700 })
  const temporary = `${path}.making-${process.pid}`
  await runProgram(go.program, ['build', ...buildFlags, '-o', temporary, './cmd/agent'], {
    cwd: guestFolder,
    env: goEnvironment(cache),
    ...(signal && { signal }),
  })
  await rename(temporary, path)
  return path
}

/** Whether the agent of these sources lies built in the cache. */
export async function agentIsBuilt(cache: string, guestFolder: string): Promise<boolean> {
  return (await stat(agentPath(cache, await agentKey(guestFolder))).catch(() => undefined)) !== undefined
}
