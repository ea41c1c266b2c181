import { randomBytes, randomUUID } from 'node:crypto'
import { create, toBinary } from '@bufbuild/protobuf'
import type { ConnectRouter } from '@connectrpc/connect'
import { type InfoResponse, InfoResponseSchema, type WakeRequest } from '@space/contract/guest'
import { FakeAgent } from './agent.ts'
import { FakePort } from './port.ts'
import { FakeProcess, type FakeProcessSpec, type ProcessWorld, type SavedProcess } from './process.ts'

/** Everything a snapshot of a fake guest holds. */
export interface SavedGuest {
  readonly bootId: string
  readonly prefix: string
  readonly hostname: string
  readonly generation: string
  readonly environment: Readonly<Record<string, string>>
  readonly clockOffsetMs: number
  readonly frozen: boolean
  readonly nextPid: number
  readonly processes: readonly SavedProcess[]
  /** Bytes of the session the snapshot was taken in, which the next host reads first. */
  readonly leftInPort: string
}

/** What a test may break in the agent. */
export interface GuestFaults {
  /** Freeze fails in this step and leaves everything as before. */
  freeze?: 'cgroup' | 'filesystem'
  /** Names of wake hooks that fail. */
  failedHooks?: readonly string[]
  /** The agent's log of processes is lost with it: Info tells of none. */
  forgetful?: boolean
}

/**
 * A guest without a kernel: the agent's side of the channel in TypeScript, true to the protocol, with scripted
 * programs in place of exec. It lives as long as its machine, whatever becomes of the node.
 */
export class FakeGuest implements ProcessWorld {
  readonly port = new FakePort()
  readonly processes = new Map<string, FakeProcess>()
  /** What the node did, for a test to look at. */
  readonly wakes: WakeRequest[] = []
  readonly faults: GuestFaults = {}
  readonly bootId: string
  hostname = 'localhost'
  generation = ''
  environment: Readonly<Record<string, string>> = {}
  clockOffsetMs = 0
  frozen = false
  /** Called when the guest shuts down by itself. */
  onPowerOff: () => void = nobody
  #prefix: Buffer
  #nextPid = 2
  #vcpusRun = true
  readonly #agent: FakeAgent

  constructor(routes: (router: ConnectRouter, guest: FakeGuest) => void, saved?: SavedGuest) {
    this.bootId = saved?.bootId ?? randomUUID()
    this.#prefix =
      saved === undefined ? Buffer.from('SPACE-GUEST-v1\r\n') : Buffer.from(saved.prefix, 'base64')
    if (saved !== undefined) this.#restore(saved)
    this.#agent = new FakeAgent(this.port, {
      prefix: () => this.#prefix,
      hello: () => toBinary(InfoResponseSchema, this.info()),
      routes: (router) => routes(router, this),
    })
  }

  running(): boolean {
    return this.#vcpusRun && !this.frozen
  }

  nowUnixMs(): number {
    return Math.round(Date.now() + this.clockOffsetMs)
  }

  info(): InfoResponse {
    const processes = this.faults.forgetful === true ? [] : [...this.processes.values()]
    return create(InfoResponseSchema, {
      protocolVersion: 1,
      agentBuild: '0.1.0+fake',
      bootId: this.bootId,
      kernelRelease: '6.1.0-fake',
      generation: this.generation,
      processes: processes.map((process) => ({
        processId: process.spec.id,
        pid: process.pid,
        nextOffset: BigInt(process.output.nextOffset),
        acknowledgedOffset: BigInt(process.output.acknowledged),
        stdinNextOffset: BigInt(process.stdin.nextOffset),
        ...(process.exit === undefined ? {} : { exit: exitMessage(process.exit) }),
      })),
    })
  }

  start(spec: FakeProcessSpec): FakeProcess {
    const process = new FakeProcess(spec, this.#nextPid, this)
    this.#nextPid += 1
    this.processes.set(spec.id, process)
    return process
  }

  setPrefix(prefix: Uint8Array): void {
    this.#prefix = Buffer.from(prefix)
  }

  /** Freezes or thaws the workload. */
  setFrozen(frozen: boolean): void {
    this.frozen = frozen
    this.#announce()
  }

  /** Stops or lets go the vCPUs: the agent, its programs and the port. */
  setRunning(running: boolean): void {
    this.#vcpusRun = running
    this.port.setRunning(running)
    this.#announce()
  }

  powerOff(): void {
    this.onPowerOff()
  }

  save(): SavedGuest {
    return {
      bootId: this.bootId,
      prefix: this.#prefix.toString('base64'),
      hostname: this.hostname,
      generation: this.generation,
      environment: this.environment,
      clockOffsetMs: this.clockOffsetMs,
      frozen: this.frozen,
      nextPid: this.#nextPid,
      processes: [...this.processes.values()].map((process) => process.save()),
      leftInPort: Buffer.concat([this.port.queued(), randomBytes(97)]).toString('base64'),
    }
  }

  /** Ends everything at once, as the end of the machine does. */
  vanish(): void {
    for (const process of this.processes.values()) process.vanish()
    this.#agent.close()
    this.port.disconnect()
  }

  #restore(saved: SavedGuest): void {
    this.hostname = saved.hostname
    this.generation = saved.generation
    this.environment = saved.environment
    this.clockOffsetMs = saved.clockOffsetMs
    this.frozen = saved.frozen
    this.#nextPid = saved.nextPid
    this.port.write(this, Buffer.from(saved.leftInPort, 'base64'), nobody)
    for (const process of saved.processes)
      this.processes.set(process.spec.id, new FakeProcess(process.spec, process.pid, this, process))
  }

  #announce(): void {
    for (const process of this.processes.values()) process.change.announce()
  }
}

/** An exit as the protocol tells it. */
export function exitMessage(exit: NonNullable<FakeProcess['exit']>) {
  return {
    exitCode: exit.exitCode,
    signal: exit.signal,
    timedOut: exit.timedOut,
    outOfMemory: exit.outOfMemory,
    finalOffset: BigInt(exit.finalOffset),
    exitedAtUnixMs: BigInt(exit.exitedAtUnixMs),
  }
}

function nobody(): void {
  // Nobody asked to be told.
}
