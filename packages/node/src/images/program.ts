import { spawn } from 'node:child_process'
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { SetUpError } from './errors.ts'

const maxStderrBytes = 64 * 1024
const defaultStdoutBytes = 16 * 1024 * 1024

export interface ProgramOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** Given to the program's standard input; nothing otherwise. */
  readonly input?: Uint8Array
  /** Each line the program prints, on either stream, as it comes. */
  readonly onLine?: (line: string) => void
  /** What of its standard output is kept at most; a program that prints more has failed. */
  readonly maxStdoutBytes?: number
  readonly signal?: AbortSignal
}

/**
 * Runs a program of the host to its end and answers what it printed. A program that is missing or fails is a
 * `SetUpError` with the last lines of its stderr; an abort ends its whole process group with SIGTERM, then SIGKILL.
 */
export async function runProgram(
  program: string,
  args: readonly string[],
  options: ProgramOptions = {},
): Promise<Buffer> {
  options.signal?.throwIfAborted()
  const child = spawn(program, [...args], {
    cwd: options.cwd,
    env: { ...hostEnvironment(), ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  })
  const end = (signal: NodeJS.Signals) => {
    if (child.pid === undefined || child.exitCode !== null) return
    try {
      process.kill(-child.pid, signal)
    } catch {
      child.kill(signal)
    }
  }
  let killTimer: NodeJS.Timeout | undefined
  const onAbort = () => {
    end('SIGTERM')
    killTimer = setTimeout(() => end('SIGKILL'), 5_000)
  }
  options.signal?.addEventListener('abort', onAbort, { once: true })
  const maxStdoutBytes = options.maxStdoutBytes ?? defaultStdoutBytes
  const stdout = collect(child.stdout, maxStdoutBytes, 'first', options.onLine)
  const stderr = collect(child.stderr, maxStderrBytes, 'last', options.onLine)
  child.stdin.on('error', () => {
    // A program that does not read its input says so by its exit code.
  })
  child.stdin.end(options.input)
  try {
    const code = await new Promise<number | NodeJS.Signals>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (status, signal) => resolve(signal ?? status ?? -1))
    })
    options.signal?.throwIfAborted()
    if (code === 0 && stdout.bytes() <= maxStdoutBytes) return stdout.kept()
    const told = lastLines(stderr.kept()) || lastLines(stdout.kept())
    throw new SetUpError(
      'program_failed',
      `${program} ${args[0] ?? ''} ended with ${code}: ${told}`,
      `Look at the lines above, then try again; the command was: ${[program, ...args].join(' ').slice(0, 2_000)}`,
    )
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
      throw new SetUpError('program_missing', `${program} is not installed.`, 'space doctor --fix', {
        cause: error,
      })
    throw error
  } finally {
    clearTimeout(killTimer)
    options.signal?.removeEventListener('abort', onAbort)
  }
}

function lastLines(bytes: Buffer): string {
  return bytes.subarray(-8_192).toString('utf8').trim().split('\n').slice(-8).join('\n')
}

/** Where a program lies on PATH or in the system's folders for administrators; undefined when it is not there. */
export async function findProgram(program: string): Promise<string | undefined> {
  for (const folder of (hostEnvironment()['PATH'] ?? '').split(delimiter)) {
    const path = join(folder, program)
    try {
      await access(path, constants.X_OK)
      return path
    } catch {
      // Not in this folder: look in the next.
    }
  }
  return undefined
}

/** The caller's environment with the folders of system programs on PATH and messages in plain English. */
function hostEnvironment(): Record<string, string | undefined> {
  const path = process.env['PATH'] ?? ''
  const folders = new Set([
    ...path.split(delimiter).filter(Boolean),
    '/usr/sbin',
    '/usr/bin',
    '/sbin',
    '/bin',
  ])
  return { ...process.env, PATH: [...folders].join(delimiter), LC_ALL: 'C.UTF-8', LANGUAGE: '' }
}

interface Collected {
  kept(): Buffer
  /** All bytes that came, kept or not. */
  bytes(): number
}

function collect(
  stream: NodeJS.ReadableStream,
  maxBytes: number,
  keep: 'first' | 'last',
  onLine: ((line: string) => void) | undefined,
): Collected {
  const chunks: Buffer[] = []
  let keptBytes = 0
  let bytes = 0
  let partial = ''
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (keep === 'last' || keptBytes < maxBytes) {
      chunks.push(chunk)
      keptBytes += chunk.length
    }
    while (keep === 'last' && chunks.length > 1 && keptBytes - (chunks[0]?.length ?? 0) >= maxBytes)
      keptBytes -= chunks.shift()?.length ?? 0
    if (onLine === undefined) return
    const lines = (partial + chunk.toString('utf8')).split(/[\r\n]+/)
    partial = (lines.pop() ?? '').slice(-4_096)
    for (const line of lines) if (line !== '') onLine(line)
  })
  return { kept: () => Buffer.concat(chunks), bytes: () => bytes }
}
