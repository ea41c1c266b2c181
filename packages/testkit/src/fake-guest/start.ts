import { type Start, StartFailed_Reason } from '@space/contract/guest'
import type { FakeProcessSpec } from './process.ts'
import { findProgram } from './programs.ts'

/** Why a process was not started. */
export interface StartRefusal {
  readonly reason: StartFailed_Reason
  readonly errno: string
}

const directories: ReadonlySet<string> = new Set([
  '/',
  '/tmp',
  '/root',
  '/home',
  '/home/user',
  '/usr',
  '/etc',
])
const homes: Readonly<Record<string, string>> = { root: '/root', user: '/home/user' }
const maxStringBytes = 131_071
const maxArgvBytes = 2 * 1024 * 1024

/** Checks a start as exec would, and fills in what the agent defaults. */
export function prepareStart(
  start: Start,
  environment: Readonly<Record<string, string>>,
): FakeProcessSpec | StartRefusal {
  const user = start.user === '' ? 'user' : start.user
  const home = homes[user] ?? '/'
  if (!Object.hasOwn(homes, user) && !/^\d+(:\d+)?$/.test(user))
    return { reason: StartFailed_Reason.UNKNOWN_USER, errno: 'ENOENT' }
  const cwd = start.cwd === '' ? home : start.cwd
  if (!directories.has(cwd))
    return { reason: StartFailed_Reason.BAD_CWD, errno: cwd === '/etc/passwd' ? 'ENOTDIR' : 'ENOENT' }
  const env = {
    HOME: home,
    USER: user,
    LOGNAME: user,
    SHELL: '/bin/bash',
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ...environment,
    ...start.env,
  }
  const strings = [...start.argv, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)]
  const lengths = strings.map((text) => Buffer.byteLength(text))
  if (
    lengths.some((bytes) => bytes > maxStringBytes) ||
    lengths.reduce((sum, bytes) => sum + bytes, 0) > maxArgvBytes
  )
    return { reason: StartFailed_Reason.ARGUMENTS_TOO_LONG, errno: 'E2BIG' }
  return (
    programRefusal(start.argv[0] ?? '') ?? {
      id: start.processId,
      argv: start.argv,
      env,
      cwd,
      user,
      stdinPipe: start.stdinPipe,
      timeoutMs: Number(start.timeoutMs),
      terminal: start.pty === undefined ? undefined : { cols: start.pty.cols, rows: start.pty.rows },
    }
  )
}

function programRefusal(argv0: string): StartRefusal | undefined {
  if (argv0 === '/etc/passwd' || argv0 === '/tmp')
    return { reason: StartFailed_Reason.PROGRAM_NOT_EXECUTABLE, errno: 'EACCES' }
  if (argv0 === 'bad-interpreter') return { reason: StartFailed_Reason.BAD_INTERPRETER, errno: 'ENOENT' }
  if (argv0 === 'no-resources') return { reason: StartFailed_Reason.RESOURCES, errno: 'EAGAIN' }
  if (findProgram(argv0) === undefined)
    return { reason: StartFailed_Reason.PROGRAM_NOT_FOUND, errno: 'ENOENT' }
  return undefined
}
