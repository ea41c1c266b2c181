import { spawn } from 'node:child_process'
import { errorCode, HostError } from './host-error.ts'
import { insideNetwork } from './namespaces.ts'

/** How much of a program's output is kept; the rest is read and dropped. */
const maxOutputBytes = 64 << 10

export interface ProgramOptions {
  /** What it reads from stdin; nothing by default. */
  readonly input?: string
  /** Path of a network namespace to start it in. */
  readonly networkNamespace?: string
  /** After this long it is killed and the call fails with `timeout`. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** Runs a host program to its end and answers its stdout. Anything but exit code 0 is a HostError with its stderr. */
export function runProgram(
  program: string,
  args: readonly string[],
  options: ProgramOptions = {},
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const start = () =>
    spawn(program, [...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: options.timeoutMs ?? 30_000,
      killSignal: 'SIGKILL',
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    })
  const child =
    options.networkNamespace === undefined ? start() : insideNetwork(options.networkNamespace, start)
  const stdout = keepOutput(child.stdout)
  const stderr = keepOutput(child.stderr)
  const operation = `${program} ${args[0] ?? ''}`
  child.stdin.on('error', () => undefined)
  child.stdin.end(options.input ?? '')
  child.on('error', (cause) => reject(new HostError(operation, errorCode(cause) ?? 'failed')))
  child.on('close', (code, killed) => {
    if (code === 0) resolve(stdout())
    else if (killed === 'SIGKILL') reject(new HostError(operation, 'timeout'))
    else reject(new HostError(operation, `exit ${code ?? killed}`, stderr().trim()))
  })
  return promise
}

function keepOutput(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = []
  let kept = 0
  stream.on('data', (chunk: Buffer) => {
    if (kept >= maxOutputBytes) return
    chunks.push(chunk.subarray(0, maxOutputBytes - kept))
    kept += chunk.length
  })
  return () => Buffer.concat(chunks).toString('utf8')
}
