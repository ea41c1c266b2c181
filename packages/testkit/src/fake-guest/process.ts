import { Change } from './change.ts'
import { OutputBuffer, type SavedOutput } from './output.ts'
import { findProgram, type ProgramIo, type Step, streamNumber, stubbornPrograms } from './programs.ts'
import { type SavedStdin, StdinPipe } from './stdin.ts'

/** What was asked for, as it is kept. */
export interface FakeProcessSpec {
  readonly id: string
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly user: string
  readonly stdinPipe: boolean
  readonly timeoutMs: number
  terminal: { readonly cols: number; readonly rows: number } | undefined
}

export interface FakeExit {
  readonly exitCode: number
  readonly signal: number
  readonly timedOut: boolean
  readonly outOfMemory: boolean
  readonly finalOffset: number
  readonly exitedAtUnixMs: number
}

/** How a process is kept in a snapshot. */
export interface SavedProcess {
  readonly spec: FakeProcessSpec
  readonly pid: number
  readonly startedAtUnixMs: number
  readonly at: Readonly<Record<string, number>>
  readonly output: SavedOutput
  readonly stdin: SavedStdin
  readonly exit: FakeExit | undefined
}

/** What a process needs of its guest. */
export interface ProcessWorld {
  readonly hostname: string
  readonly generation: string
  /** False while the machine stands still or the workload is frozen. */
  running(): boolean
  nowUnixMs(): number
}

const pieceBytes = 128 * 1024
const sleepStepMs = 200
const sigkill = 9
const ignoredByDefault: ReadonlySet<number> = new Set([17, 18, 23, 28])
const stopping: ReadonlySet<number> = new Set([19, 20, 21, 22])
const sigcont = 18

/** A process of the fake guest: a scripted program with real output, stdin, signals and exit. */
export class FakeProcess {
  readonly spec: FakeProcessSpec
  readonly pid: number
  readonly startedAtUnixMs: number
  readonly output: OutputBuffer
  readonly stdin: StdinPipe
  /** Announced at every byte, acknowledgement, signal and exit. */
  readonly change = new Change()
  exit: FakeExit | undefined
  readonly #world: ProcessWorld
  readonly #at: Record<string, number>
  readonly #killed = new AbortController()
  #stopped = false
  #killSignal = 0
  #timedOut = false
  #outOfMemory = false

  constructor(spec: FakeProcessSpec, pid: number, world: ProcessWorld, saved?: SavedProcess) {
    this.spec = spec
    this.pid = pid
    this.#world = world
    this.startedAtUnixMs = saved?.startedAtUnixMs ?? world.nowUnixMs()
    this.output = saved === undefined ? new OutputBuffer() : OutputBuffer.restore(saved.output)
    this.stdin = saved === undefined ? new StdinPipe() : StdinPipe.restore(saved.stdin)
    this.#at = { ...saved?.at }
    this.exit = saved?.exit
    if (!spec.stdinPipe && spec.terminal === undefined) this.stdin.close(0)
    if (this.exit === undefined) void this.#run()
  }

  save(): SavedProcess {
    const { spec, pid, startedAtUnixMs, exit } = this
    return {
      spec,
      pid,
      startedAtUnixMs,
      at: { ...this.#at },
      output: this.output.save(),
      stdin: this.stdin.save(),
      exit,
    }
  }

  /** Delivers a signal; false when the process had ended. */
  signal(number: number): boolean {
    if (this.exit !== undefined || this.#killed.signal.aborted) return false
    if (stopping.has(number)) this.#stopped = true
    else if (number === sigcont) this.#stopped = false
    const name = this.spec.argv[0] ?? ''
    const ignored = number !== sigkill && stubbornPrograms.has(name)
    if (!ignored && !ignoredByDefault.has(number) && !stopping.has(number)) this.#kill(number)
    this.change.announce()
    return true
  }

  /** Ends it as the kernel does when memory runs out. */
  killOutOfMemory(): void {
    this.#outOfMemory = true
    this.#kill(sigkill)
  }

  /** Ends the scripted program without an exit: the machine is gone. */
  vanish(): void {
    this.#killed.abort(new Vanished())
  }

  resize(cols: number, rows: number): void {
    if (this.spec.terminal !== undefined) this.spec.terminal = { cols, rows }
    this.change.announce()
  }

  #kill(number: number): void {
    this.#killSignal = number
    this.#killed.abort(new Killed())
  }

  async #run(): Promise<void> {
    const timeout =
      this.spec.timeoutMs > 0 ? setTimeout(() => this.#timeOut(), this.spec.timeoutMs) : undefined
    let exitCode = 0
    try {
      const program = findProgram(this.spec.argv[0] ?? '')
      exitCode = (await program?.(this.#io())) ?? 127
    } catch (error) {
      if (error instanceof Vanished) return
      if (!(error instanceof Killed)) throw error
    } finally {
      clearTimeout(timeout)
    }
    this.exit = {
      exitCode,
      signal: this.#killSignal,
      timedOut: this.#timedOut,
      outOfMemory: this.#outOfMemory,
      finalOffset: this.output.nextOffset,
      exitedAtUnixMs: this.#world.nowUnixMs(),
    }
    this.change.announce()
  }

  #timeOut(): void {
    this.#timedOut = true
    this.#kill(sigkill)
  }

  #io(): ProgramIo {
    const { spec, change, stdin, output } = this
    const at = this.#at
    const { signal } = this.#killed
    const running = () => this.#world.running() && !this.#stopped
    return {
      argv: spec.argv,
      env: spec.env,
      cwd: spec.cwd,
      user: spec.user,
      hostname: this.#world.hostname,
      generation: this.#world.generation,
      get terminal() {
        return spec.terminal
      },
      at,
      async write(stream, given, step: Step = {}) {
        const bytes = typeof given === 'string' ? Buffer.from(given) : Buffer.from(given)
        let done = 0
        do {
          const piece = bytes.subarray(done, done + pieceBytes)
          await change.until(() => running() && output.roomBytes >= piece.length, signal)
          output.put(streamNumber(stream, spec.terminal !== undefined), piece)
          done += piece.length
          if (done === bytes.length) {
            Object.assign(at, step.at)
            stdin.take(step.stdinBytes ?? 0)
          }
          change.announce()
        } while (done < bytes.length)
      },
      async peek(maxBytes) {
        await change.until(() => running() && (stdin.atEnd || stdin.peek(1).length > 0), signal)
        return stdin.peek(maxBytes)
      },
      async sleep(ms) {
        for (let slept = at['slept'] ?? 0; slept < ms; slept = at['slept'] ?? ms) {
          await change.until(running, signal)
          const stepMs = Math.min(sleepStepMs, ms - slept)
          await delay(stepMs, signal)
          at['slept'] = slept + stepMs
        }
      },
    }
  }
}

class Killed extends Error {}
class Vanished extends Error {}

function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
    if (signal.aborted) done()

    function done(): void {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      if (signal.aborted) reject(signal.reason)
      else resolve()
    }
  })
}
