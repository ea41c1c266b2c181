import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { agentIsBuilt } from '../images/agent.ts'
import { imagePaths, projectRoot, type SpaceHome } from '../images/paths.ts'
import { findProgram } from '../images/program.ts'
import { findGo, minimumGo } from '../images/toolchain.ts'
import { bad, type Check, ok } from './check.ts'

const minimumNodeMajor = 24

/** Who runs this, on what system, and what the project itself is run and built with. */
export async function runtimeChecks(home: SpaceHome): Promise<Check[]> {
  return [await systemCheck(), rootCheck(), nodeCheck(), await goCheck(home)]
}

async function systemCheck(): Promise<Check> {
  const release = await readFile('/etc/os-release', 'utf8').catch(() => '')
  const name = /^PRETTY_NAME="?(.*?)"?$/m.exec(release)?.[1] ?? 'unknown system'
  if ((await findProgram('apt-get')) !== undefined) return ok('system', 'System', name)
  const remedy = 'Run SPACE on Debian 12 or newer, or Ubuntu 22.04 or newer.'
  return bad('fail', 'system', 'System', `${name} has no apt`, remedy)
}

function rootCheck(): Check {
  if (process.getuid?.() === 0) return ok('root', 'Root', 'running as root')
  return bad('fail', 'root', 'Root', `running as uid ${process.getuid?.()}`, 'sudo npm start')
}

function nodeCheck(): Check {
  const { node } = process.versions
  if (Number.parseInt(node, 10) >= minimumNodeMajor)
    return ok('node', 'Node.js', `${node}, ${process.execPath}`)
  return bad(
    'fail',
    'node',
    'Node.js',
    `${node} is older than ${minimumNodeMajor}`,
    'npm ci --include=optional',
  )
}

async function goCheck(home: SpaceHome): Promise<Check> {
  const guest = join(projectRoot, 'guest')
  const { cache } = imagePaths(home)
  const minimum = await minimumGo(guest)
  const go = await findGo(cache, minimum)
  if (go !== undefined) return ok('go', 'Go', `${go.version}, ${go.program}; builds the guest agent`)
  if (await agentIsBuilt(cache, guest)) return ok('go', 'Go', 'not here and not needed: the agent is built')
  return bad('warn', 'go', 'Go', `none from ${minimum} on; set-up brings one for itself`, 'npm start')
}
