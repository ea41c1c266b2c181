/**
 * What a fake guest can run. A program's progress is a small record of numbers, changed in the same step as its effect,
 * so that a snapshot taken between two steps continues at the right byte.
 */
import type { StreamNumber } from './output.ts'

/** What a program sees of the world. Every wait rejects when the process is killed. */
export interface ProgramIo {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly user: string
  readonly hostname: string
  readonly generation: string
  readonly terminal: { readonly cols: number; readonly rows: number } | undefined
  /** Where the program is; survives a snapshot. */
  readonly at: Record<string, number>
  /** Writes, waiting for room; in the same step it takes bytes off stdin and moves `at` along. */
  write(stream: 'stdout' | 'stderr', bytes: Uint8Array | string, step?: Step): Promise<void>
  /** What there is of stdin, which stays there until a step takes it; empty at its end. */
  peek(maxBytes: number): Promise<Buffer>
  /** Waits on the guest's monotonic clock; `at.slept` says how much of it is over. */
  sleep(ms: number): Promise<void>
}

/** What changes together with a write. */
export interface Step {
  readonly at?: Readonly<Record<string, number>>
  readonly stdinBytes?: number
}

export type Program = (io: ProgramIo) => Promise<number>

const chunkBytes = 64 * 1024

/** The bytes `print` prints: byte `n` of the pattern is the same wherever it is cut. */
export function patternBytes(from: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let index = 0; index < length; index += 1) bytes[index] = patternByte(from + index)
  return bytes
}

function patternByte(position: number): number {
  return (Math.imul(position, 0x9e3779b1) >>> 13) & 0xff
}

const print: Program = async (io) => {
  const total = Number(io.argv[1] ?? 0)
  const chunk = Number(io.argv[2] ?? chunkBytes)
  for (let done = io.at['done'] ?? 0; done < total; done = io.at['done'] ?? total) {
    const bytes = patternBytes(done, Math.min(chunk, total - done))
    await io.write('stdout', bytes, { at: { done: done + bytes.length } })
  }
  return 0
}

const seq: Program = async (io) => {
  const [first, last] = io.argv.length > 2 ? [io.argv[1], io.argv[2]] : ['1', io.argv[1]]
  const end = Number(last ?? 0)
  for (let next = io.at['next'] ?? Number(first); next <= end; next = io.at['next'] ?? end + 1) {
    let text = ''
    let upTo = next
    for (; upTo <= end && text.length < chunkBytes; upTo += 1) text += `${upTo}\n`
    await io.write('stdout', text, { at: { next: upTo } })
  }
  return 0
}

const cat: Program = async (io) => {
  for (;;) {
    const bytes = await io.peek(chunkBytes)
    if (bytes.length === 0) return 0
    await io.write('stdout', bytes, { stdinBytes: bytes.length })
  }
}

const head: Program = async (io) => {
  const total = Number(io.argv[2] ?? 0)
  for (let done = io.at['done'] ?? 0; done < total; done = io.at['done'] ?? total) {
    const bytes = await io.peek(Math.min(chunkBytes, total - done))
    if (bytes.length === 0) return 0
    await io.write('stdout', bytes, { at: { done: done + bytes.length }, stdinBytes: bytes.length })
  }
  return 0
}

const sleep: Program = async (io) => {
  await io.sleep(Number(io.argv[1] ?? 0) * 1000)
  return 0
}

const yes: Program = async (io) => {
  const lines = `${io.argv.slice(1).join(' ') || 'y'}\n`.repeat(4_096)
  for (;;) await io.write('stdout', lines)
}

async function say(io: ProgramIo, text: string): Promise<number> {
  if (io.at['said'] === undefined) await io.write('stdout', text, { at: { said: 1 } })
  return 0
}

/** Turns the escapes of printf(1) and its %s into bytes. */
function formatted(format: string, args: readonly string[]): Buffer {
  const rest = [...args]
  const latin = format.replace(
    /\\(x[0-9a-f]{1,2}|[0-7]{1,3}|.)|%s|%%/gis,
    (whole, code: string | undefined) => {
      if (whole === '%s') return Buffer.from(rest.shift() ?? '').toString('latin1')
      if (whole === '%%') return '%'
      if (code === undefined) return whole
      if (/^x./i.test(code)) return String.fromCharCode(Number.parseInt(code.slice(1), 16))
      if (/^[0-7]/.test(code)) return String.fromCharCode(Number.parseInt(code, 8) & 0xff)
      return simpleEscapes[code] ?? whole
    },
  )
  return Buffer.from(latin, 'latin1')
}

const simpleEscapes: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', '\\': '\\', a: '\x07' }

const programs: Readonly<Record<string, Program>> = {
  true: async () => 0,
  false: async () => 1,
  exit: async (io) => Number(io.argv[1] ?? 0) & 0xff,
  echo: (io) => say(io, `${io.argv.slice(1).join(' ')}\n`),
  printf: async (io) => {
    if (io.at['said'] === undefined)
      await io.write('stdout', formatted(io.argv[1] ?? '', io.argv.slice(2)), { at: { said: 1 } })
    return 0
  },
  stderr: async (io) => {
    if (io.at['said'] === undefined)
      await io.write('stderr', `${io.argv.slice(1).join(' ')}\n`, { at: { said: 1 } })
    return 0
  },
  pwd: (io) => say(io, `${io.cwd}\n`),
  whoami: (io) => say(io, `${io.user}\n`),
  hostname: (io) => say(io, `${io.hostname}\n`),
  generation: (io) => say(io, `${io.generation}\n`),
  stty: (io) => say(io, `${io.terminal?.rows ?? 0} ${io.terminal?.cols ?? 0}\n`),
  env: (io) =>
    say(
      io,
      Object.entries(io.env)
        .map(([name, value]) => `${name}=${value}\n`)
        .join(''),
    ),
  print,
  seq,
  cat,
  head,
  sleep,
  yes,
  /** Sleeps, and does not end at TERM, INT or HUP. */
  stubborn: sleep,
}

/** Programs that ignore the signals a program may ignore. */
export const stubbornPrograms: ReadonlySet<string> = new Set(['stubborn'])

/** A program by its name or its path in /bin or /usr/bin. */
export function findProgram(argv0: string): Program | undefined {
  const name = argv0.replace(/^\/(usr\/)?bin\//, '')
  if (name === 'sh' || name === 'bash') return shell
  return Object.hasOwn(programs, name) ? programs[name] : undefined
}

/**
 * Just enough of a shell for a test's one-liners: words, quotes, `;`, `&&` and a `>&2` at the end of a command. Each
 * command's progress is dropped when it is over; `at.command` counts them.
 */
const shell: Program = async (io) => {
  const script = io.argv[1] === '-c' || io.argv[1] === '-lc' ? (io.argv[2] ?? '') : ''
  const commands = script.split(/;|&&/).map((text) => text.trim())
  let status = 0
  for (let index = io.at['command'] ?? 0; index < commands.length; index += 1) {
    const words = split(commands[index] ?? '')
    const toStderr = words.at(-1) === '>&2'
    const argv = toStderr ? words.slice(0, -1) : words
    const [name] = argv
    if (name === undefined) continue
    if (name === 'exit') return Number(argv[1] ?? status) & 0xff
    const program = findProgram(name)
    if (program === undefined) {
      await io.write('stderr', `sh: 1: ${name}: not found\n`, { at: { command: index + 1 } })
      status = 127
      continue
    }
    status = await program({
      ...io,
      argv,
      write: (stream, bytes, step) => io.write(toStderr ? 'stderr' : stream, bytes, step),
    })
    for (const key of Object.keys(io.at)) delete io.at[key]
    io.at['command'] = index + 1
  }
  return status
}

function split(command: string): string[] {
  return (command.match(/'[^']*'|"[^"]*"|[^\s'"]+/g) ?? []).map((word) =>
    word.replace(/^(['"])(.*)\1$/s, '$2'),
  )
}

/** The number guest.v1 gives a stream. */
export function streamNumber(stream: 'stdout' | 'stderr', pty: boolean): StreamNumber {
  if (pty) return 3
  return stream === 'stdout' ? 1 : 2
}
