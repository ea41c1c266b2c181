/**
 * Starts a program that nobody trusts: its own uid with no capabilities left and no way to new ones, its own session,
 * its own network namespace, hard limits, only the descriptors that were meant for it, and an empty environment.
 * This thread enters the namespace for the moment of the fork and the uid is set before exec, so no code runs with
 * root's rights in between; `prlimit` and `setpriv` (util-linux) then lower what an unprivileged process may lower
 * itself, since a root without CAP_SYS_RESOURCE, as in a container, cannot do it to another.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { HostError } from './host-error.ts'
import { insideNetwork } from './namespaces.ts'

export interface StartRequest {
  readonly program: string
  readonly args: readonly string[]
  readonly uid: number
  readonly gid: number
  /** Path of a network namespace, e.g. `/run/netns/space-7`. */
  readonly networkNamespace: string
  /** Descriptors the program gets, from number 3 on, in this order. */
  readonly descriptors: readonly number[]
  /** Where its stdout and stderr go: a file, never a pipe, since the program outlives this process. */
  readonly output: number
  readonly limits: ProcessLimits
}

export interface ProcessLimits {
  /** Largest file it can write, in bytes. */
  readonly fileBytes: number
  readonly openFiles: number
  /** Processes and threads of its uid. */
  readonly threads: number
}

/** The number a program sees its `index`-th descriptor of a StartRequest under. */
export function descriptorNumber(index: number): number {
  return 3 + index
}

/**
 * Starts the program. A program that is missing shows as an early exit with code 127 and a line in its output;
 * HostError when not even the launcher is there.
 */
export function startProcess(request: StartRequest): ChildProcess & { readonly pid: number } {
  const child = insideNetwork(request.networkNamespace, () =>
    spawn('prlimit', launchArguments(request), {
      cwd: '/',
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
      stdio: ['ignore', request.output, request.output, ...request.descriptors],
      detached: true,
      uid: request.uid,
      gid: request.gid,
    }),
  )
  if (child.pid === undefined) {
    child.on('error', () => undefined)
    throw new HostError(`start ${request.program}`, 'ENOENT', 'prlimit could not be started')
  }
  child.unref()
  return child as ChildProcess & { readonly pid: number }
}

/** The whole command line: limits, then no-new-privileges, then the program. */
export function launchArguments({
  program,
  args,
  limits,
}: Pick<StartRequest, 'program' | 'args' | 'limits'>): string[] {
  return [
    '--core=0',
    '--memlock=0',
    `--fsize=${limits.fileBytes}`,
    `--nofile=${limits.openFiles}`,
    `--nproc=${limits.threads}`,
    'setpriv',
    '--no-new-privs',
    '--inh-caps=-all',
    program,
    ...args,
  ]
}
