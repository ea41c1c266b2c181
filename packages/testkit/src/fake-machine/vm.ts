import { randomBytes } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import type { DiskChain, MachineExit } from '@space/node/machine'
import { type FakeGuest, type SavedGuest, startFakeGuest } from '../fake-guest/index.ts'

/** A fake VMM process with its guest: what would be a QEMU and outlives the node service. */
export class FakeVm {
  readonly folder: string
  readonly guest: FakeGuest
  readonly exited: Promise<MachineExit>
  /** Where the host connects to the guest channel: an abstract Unix socket, so that nothing is left in the folder. */
  readonly channelAddress = `\0space-fake-machine-${randomBytes(8).toString('hex')}`
  disk: DiskChain
  paused = false
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #exit = Promise.withResolvers<MachineExit>()
  #channel: 'answers' | 'stalled' = 'answers'

  private constructor(folder: string, disk: DiskChain, saved?: SavedGuest) {
    this.folder = folder
    this.disk = disk
    this.exited = this.#exit.promise
    this.guest = startFakeGuest(saved)
    this.guest.onPowerOff = () => this.end({ reason: 'powered_off', detail: 'the guest shut down' })
    this.#server = createServer((socket) => this.#connect(socket))
  }

  /** Starts a VMM; with a saved guest it continues that one. */
  static async start(folder: string, disk: DiskChain, saved?: SavedGuest): Promise<FakeVm> {
    const vm = new FakeVm(folder, disk, saved)
    await new Promise<void>((resolve, reject) => {
      vm.#server.once('error', reject)
      vm.#server.listen(vm.channelAddress, resolve)
    })
    return vm
  }

  pause(): void {
    this.paused = true
    this.#letRun()
  }

  resume(): void {
    this.paused = false
    this.#letRun()
  }

  /** The agent stops to answer, or goes on: a guest that hangs. */
  setStalled(stalled: boolean): void {
    this.#channel = stalled ? 'stalled' : 'answers'
    this.#letRun()
  }

  /** Cuts the byte stream: the next connection is a new one, the guest sees nothing of it. */
  cutChannel(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Ends the VMM. The first reason stands. */
  end(exit: MachineExit): void {
    this.guest.vanish()
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close(() => this.#exit.resolve(exit))
  }

  #letRun(): void {
    this.guest.setRunning(!this.paused && this.#channel === 'answers')
  }

  #connect(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    this.guest.port.connect(socket)
  }
}
