import { constants, existsSync } from 'node:fs'
import { mkdir, open } from 'node:fs/promises'
import { hostControllers } from '../host/cgroups.ts'
import { SetUpError } from '../images/errors.ts'
import { findProgram, runProgram } from '../images/program.ts'
import { isErrno } from '../images/publish.ts'
import { installCommand } from '../images/system-packages.ts'
import { bad, type Check, ok } from './check.ts'

const tun = '/dev/net/tun'

/** What keeps sandboxes apart on this host: taps, namespaces, packet filter, control groups. */
export async function isolationChecks(): Promise<Check[]> {
  return [await tunCheck(), await namespaceCheck(), await nftablesCheck(), cgroupCheck()]
}

async function tunCheck(): Promise<Check> {
  const title = 'Taps'
  try {
    await (await open(tun, constants.O_RDWR)).close()
    return ok('tun', title, `${tun} can be opened`)
  } catch (error) {
    const why = isErrno(error, 'ENOENT') ? 'is missing' : `cannot be opened (${errnoOf(error)})`
    const remedy = existsSync(tun) ? 'modprobe tun' : `mkdir -p /dev/net && mknod -m 0600 ${tun} c 10 200`
    return bad('fail', 'tun', title, `${tun} ${why}`, remedy, makeTun)
  }
}

async function makeTun(): Promise<void> {
  await runProgram('modprobe', ['tun']).catch((error: unknown) => {
    // Often built into the kernel, or the host's to load: the node file may be all that is missing.
    if (!(error instanceof SetUpError)) throw error
  })
  if (existsSync(tun)) return
  await mkdir('/dev/net', { recursive: true })
  await runProgram('mknod', ['-m', '0600', tun, 'c', '10', '200'])
}

async function namespaceCheck(): Promise<Check> {
  const title = 'Namespaces'
  const failed = await failure('unshare', [
    '--net',
    '--mount',
    '--propagation',
    'unchanged',
    '--pid',
    '--fork',
    'true',
  ])
  if (failed === undefined) return ok('namespaces', title, 'network, mount and PID namespaces can be made')
  return bad(
    'fail',
    'namespaces',
    title,
    `cannot be made: ${failed}`,
    'Run as root; in a container, with --privileged.',
  )
}

async function nftablesCheck(): Promise<Check> {
  const title = 'Packet filter'
  if ((await findProgram('nft')) === undefined)
    return bad('fail', 'nftables', title, 'the program nft is missing', installCommand(['nftables']))
  const failed = await failure('unshare', ['--net', 'nft', 'add table inet space_doctor'])
  if (failed === undefined) return ok('nftables', title, 'nftables works in a namespace of its own')
  return bad(
    'fail',
    'nftables',
    title,
    `nftables does not work: ${failed}`,
    'modprobe nf_tables',
    async () => {
      await runProgram('modprobe', ['nf_tables'])
    },
  )
}

function cgroupCheck(): Check {
  const title = 'Control groups'
  const mounts = hostControllers()
  const missing = ['memory', 'cpu', 'pids'].filter(
    (name) => !mounts.some(({ controller }) => controller === name),
  )
  const found = mounts.map(({ controller, version }) => `${controller} (v${version})`).join(', ')
  if (missing.length === 0) return ok('cgroups', title, found)
  const mounted = mounts.length > 0 || existsSync('/sys/fs/cgroup/cgroup.controllers')
  return bad(
    'fail',
    'cgroups',
    title,
    `no controller for ${missing.join(', ')}${found === '' ? '' : `; found ${found}`}`,
    mounted ? 'Start the kernel with cgroup_enable=memory.' : 'mount -t cgroup2 cgroup2 /sys/fs/cgroup',
  )
}

/** Why a program that proves something fails, in a line; undefined when it succeeds. */
async function failure(program: string, args: readonly string[]): Promise<string | undefined> {
  try {
    await runProgram(program, args, { signal: AbortSignal.timeout(10_000) })
    return undefined
  } catch (error) {
    return error instanceof Error ? (error.message.split('\n').at(-1) ?? '') : String(error)
  }
}

function errnoOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
}
