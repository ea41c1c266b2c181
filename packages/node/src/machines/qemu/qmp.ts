/**
 * The control channel to one QEMU. The VMM is not trusted: lines and times are bounded, and what it says that cannot
 * be parsed ends the channel. One command is under way at a time; further ones wait for it.
 */
import type { Dialled } from '../../host/unix-sockets.ts'
import { sendDescriptors } from '../../host/unix-sockets.ts'
import { MachineError } from '../machine-error.ts'
import { QmpLines, type QmpMessage } from './qmp-lines.ts'

/** How long a VMM may take for a command unless the caller says otherwise. */
const commandTimeoutMs = 60_000
/** Bytes a VMM may send in a second. An honest one sends some kilobytes; more would only keep the node busy. */
const maxBytesPerSecond = 4 << 20
/** Commands that may wait for their turn. */
const maxWaiting = 64

export interface QmpEvent {
  readonly name: string
  readonly data: Record<string, unknown>
}

export interface QmpOptions {
  readonly timeoutMs?: number
  /** Descriptors sent along (SCM_RIGHTS); the caller closes its own after the answer. */
  readonly descriptors?: readonly number[]
}

interface UnderWay {
  readonly id: number
  readonly command: string
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

export class Qmp {
  /** Resolves when the channel is over: the VMM ended, broke the protocol, or `close` was called. */
  readonly closed: Promise<void>
  readonly #channel: Dialled
  readonly #lines = new QmpLines()
  readonly #listeners = new Set<(event: QmpEvent) => void>()
  readonly #greeted = Promise.withResolvers<string>()
  #underWay: UnderWay | undefined
  #tail: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #lastId = 0
  #second = { start: 0, bytes: 0 }
  #over: MachineError | undefined

  constructor(channel: Dialled) {
    this.#channel = channel
    const { promise, resolve } = Promise.withResolvers<void>()
    this.closed = promise
    this.#greeted.promise.catch(() => undefined)
    channel.socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    channel.socket.on('error', (error) =>
      this.#end(new MachineError('vmm_gone', 'the QMP channel broke', { cause: error })),
    )
    channel.socket.on('close', () => {
      this.#end(new MachineError('vmm_gone', 'the QMP channel closed'))
      resolve()
    })
  }

  /** Agrees on capabilities; resolves with QEMU's version. Call it once, first. */
  async negotiate(timeoutMs = commandTimeoutMs): Promise<string> {
    const timer = setTimeout(() => this.#end(new MachineError('vmm_timeout', 'no QMP greeting')), timeoutMs)
    try {
      const version = await this.#greeted.promise
      await this.execute('qmp_capabilities', {}, { timeoutMs })
      return version
    } finally {
      clearTimeout(timer)
    }
  }

  /** Runs a command after those that wait already. `vmm_refused` carries QEMU's own words. */
  execute(command: string, args: Record<string, unknown> = {}, options: QmpOptions = {}): Promise<unknown> {
    if (this.#waiting >= maxWaiting)
      return Promise.reject(new MachineError('vmm_protocol', 'too many commands wait'))
    this.#waiting += 1
    const result = this.#tail
      .then(() => this.#run(command, args, options))
      .finally(() => {
        this.#waiting -= 1
      })
    this.#tail = result.catch(() => undefined)
    return result
  }

  /** Calls `listener` for every event from now on; answers how to stop. */
  onEvent(listener: (event: QmpEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#end(new MachineError('machine_closed', 'the QMP channel was closed'))
  }

  async #run(command: string, args: Record<string, unknown>, options: QmpOptions): Promise<unknown> {
    if (this.#over !== undefined) throw this.#over
    const id = ++this.#lastId
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    this.#underWay = { id, command, resolve, reject }
    const timer = setTimeout(
      () => this.#end(new MachineError('vmm_timeout', `no answer to ${command}`)),
      options.timeoutMs ?? commandTimeoutMs,
    )
    try {
      this.#send(
        Buffer.from(`${JSON.stringify({ execute: command, arguments: args, id })}\r\n`),
        options.descriptors,
      )
      return await promise
    } finally {
      clearTimeout(timer)
      this.#underWay = undefined
    }
  }

  #send(bytes: Buffer, descriptors: readonly number[] | undefined): void {
    // The number of a closed descriptor may be another file's by now.
    if (this.#channel.socket.destroyed) throw new MachineError('vmm_gone', 'the QMP channel is closed')
    if (descriptors === undefined) this.#channel.socket.write(bytes)
    else sendDescriptors(this.#channel.fd, bytes, descriptors)
  }

  #receive(chunk: Buffer): void {
    try {
      this.#meter(chunk.length)
      for (const message of this.#lines.push(chunk)) this.#dispatch(message)
    } catch (error) {
      this.#end(
        error instanceof MachineError
          ? error
          : new MachineError('vmm_protocol', 'unreadable', { cause: error }),
      )
    }
  }

  #meter(bytes: number): void {
    const now = performance.now()
    if (now - this.#second.start > 1_000) this.#second = { start: now, bytes: 0 }
    this.#second.bytes += bytes
    if (this.#second.bytes > maxBytesPerSecond)
      throw new MachineError('vmm_protocol', 'more QMP bytes than allowed')
  }

  #dispatch(message: QmpMessage): void {
    if (message.kind === 'greeting') {
      this.#greeted.resolve(message.version)
      return
    }
    if (message.kind === 'event') {
      for (const listener of [...this.#listeners]) listener({ name: message.name, data: message.data })
      return
    }
    const waiting = this.#underWay
    if (waiting === undefined || waiting.id !== message.id) return
    if (message.kind === 'return') waiting.resolve(message.value)
    else waiting.reject(new MachineError('vmm_refused', `${waiting.command}: ${message.description}`))
  }

  #end(error: MachineError): void {
    if (this.#over !== undefined) return
    this.#over = error
    this.#greeted.reject(error)
    this.#underWay?.reject(error)
    this.#channel.socket.destroy()
  }
}
