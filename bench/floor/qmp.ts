/** A QMP client as small as it can be: one command at a time, events handed to whoever waits for them. */
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { FloorError } from './errors.ts'

const maxLineBytes = 1_048_576

export interface Qmp {
  command(name: string, args?: Record<string, unknown>): Promise<unknown>
  /** Resolves at the next event of this name. */
  event(name: string): Promise<unknown>
  close(): void
}

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (failure: Error) => void
}

/** Connects as soon as the socket is there (looked for every 2 ms) and leaves QMP's negotiation mode. */
export async function openQmp(path: string, timeoutMs: number): Promise<Qmp> {
  const socket = await connectSoon(path, timeoutMs)
  const answers: Waiting[] = []
  const events: (Waiting & { readonly name: string })[] = []
  const greeted = Promise.withResolvers<void>()
  let held = ''
  socket.setEncoding('utf8')
  socket.on('data', (chunk: string) => {
    held += chunk
    if (held.length > maxLineBytes) socket.destroy(new FloorError('QEMU sent a line that is too long.'))
    for (let end = held.indexOf('\n'); end >= 0; end = held.indexOf('\n')) {
      take(held.slice(0, end))
      held = held.slice(end + 1)
    }
  })
  const take = (line: string) => {
    const message = JSON.parse(line) as Record<string, unknown>
    if ('QMP' in message) greeted.resolve()
    else if ('event' in message) {
      const name = message['event']
      for (const waiting of events.splice(0)) {
        if (waiting.name === name) waiting.resolve(undefined)
        else events.push(waiting)
      }
    } else if ('error' in message)
      answers
        .shift()
        ?.reject(new FloorError(`QEMU refused: ${JSON.stringify(message['error']).slice(0, 300)}`))
    else answers.shift()?.resolve(message['return'])
  }
  const fail = () => {
    greeted.reject(new FloorError('QEMU closed its control socket before it greeted.'))
    for (const waiting of [...answers.splice(0), ...events.splice(0)])
      waiting.reject(new FloorError('QEMU closed its control socket.'))
  }
  socket.on('close', fail)
  socket.on('error', fail)
  const qmp: Qmp = {
    command(name, args) {
      return new Promise((resolve, reject) => {
        answers.push({ resolve, reject })
        socket.write(`${JSON.stringify({ execute: name, ...(args && { arguments: args }) })}\n`)
      })
    },
    event(name) {
      const next = new Promise((resolve, reject) => events.push({ name, resolve, reject }))
      next.catch(() => undefined)
      return next
    },
    close: () => socket.destroy(),
  }
  const deadline = setTimeout(() => socket.destroy(), timeoutMs)
  await greeted.promise
  clearTimeout(deadline)
  await qmp.command('qmp_capabilities')
  return qmp
}

async function connectSoon(path: string, timeoutMs: number): Promise<Socket> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const socket = await new Promise<Socket | undefined>((resolve) => {
      const candidate = connect(path)
      candidate.once('connect', () => resolve(candidate))
      candidate.once('error', () => resolve(undefined))
    })
    if (socket) return socket
    if (performance.now() > deadline) throw new FloorError(`QEMU's control socket did not appear: ${path}.`)
    await delay(2)
  }
}
