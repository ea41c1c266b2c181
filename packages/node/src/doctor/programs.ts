import { type HostProgram, hostPrograms, locate } from '../images/host-programs.ts'
import { runProgram } from '../images/program.ts'
import { installCommand, installSystemPackages } from '../images/system-packages.ts'
import { bad, type Check, ok } from './check.ts'

/** The oldest QEMU whose machine state SPACE saves and restores. */
const minimumQemu = 7.2

/** Each program of the host with its version, or the package that brings it. */
export async function programChecks(): Promise<Check[]> {
  return await Promise.all(hostPrograms.map(programCheck))
}

/** One program: where it lies and its version, or how to get it. */
export async function programCheck(program: HostProgram): Promise<Check> {
  const name = program.program.split('/').at(-1) ?? program.program
  const path = await locate(program)
  if (path === undefined) {
    const install = async () => {
      await installSystemPackages(() => undefined)
    }
    const detail = `missing; ${program.use}; package ${program.package}`
    return bad('fail', name, name, detail, installCommand([program.package]), install)
  }
  const version = program.version === undefined ? undefined : await toldVersion(path, program.version)
  const detail = `${version === undefined ? '' : `${version}, `}${path}; ${program.use}`
  if (program.program === 'qemu-system-x86_64' && Number.parseFloat(version ?? '0') < minimumQemu)
    return bad(
      'fail',
      name,
      name,
      `${detail}; older than ${minimumQemu}`,
      'Upgrade the system to Debian 12 or Ubuntu 24.04.',
    )
  return ok(name, name, detail)
}

/** The first number with a dot in what the program says about itself, on either stream. */
async function toldVersion(path: string, args: readonly string[]): Promise<string | undefined> {
  const lines: string[] = []
  try {
    await runProgram(path, args, { onLine: (line) => lines.push(line), signal: AbortSignal.timeout(10_000) })
  } catch {
    return undefined
  }
  return /\d+(?:\.\d+)+/.exec(lines.join('\n'))?.[0] ?? /\b\d+\b/.exec(lines.join('\n'))?.[0]
}
