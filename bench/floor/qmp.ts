/**
 * A QMP client as small as it can be, over QEMU's stdin and stdout: one command at a time, events handed to whoever
 * waits for them. Not over a socket, since a client that connects while QEMU still starts can leave QEMU's main thread
 * waiting in accept for ever (two of its threads watch the listener for a moment; seen with 7.2).
 */
import type { Readable, Writable } from 'node:stream'
import { FloorError } from './errors.ts'

const maxLineBytes = 1_048_576
const answerTimeoutMs = 60_000

export interface Qmp {
  command(name: string, args?: Record<string, unknown>): Promise<unknown>
  /** Resolves at the next event of this name. */
  event(name: string): Promise<unknown>
}

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (failure: Error) => void
}

/** Waits for the greeting and leaves QMP's negotiation mode; rejects when QEMU ends or stays silent. */
export async function openQmp(input: Writable, output: Readable): Promise<Qmp> {
  const answers: Waiting[] = []
  const events: (Waiting & { readonly name: string })[] = []
  const greeted = Promise.withResolvers<unknown>()
  const fail = (failure: FloorError) => {
    greeted.reject(failure)
    for (const waiting of [...answers.splice(0), ...events.splice(0)]) waiting.reject(failure)
  }
  const take = (line: string) => {
    const message = JSON.parse(line) as Record<string, unknown>
    if ('QMP' in message) greeted.resolve(undefined)
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
  let held = ''
  output.setEncoding('utf8')
  output.on('data', (chunk: string) => {
    held += chunk
    if (held.length > maxLineBytes) output.destroy()
    for (let end = held.indexOf('\n'); end >= 0; end = held.indexOf('\n')) {
      take(held.slice(0, end))
      held = held.slice(end + 1)
    }
  })
  output.on('close', () => fail(new FloorError('QEMU closed its control channel.')))
  input.on('error', () => fail(new FloorError('QEMU takes no commands any more.')))
  const qmp: Qmp = {
    async command(name, args) {
      const answer = Promise.withResolvers<unknown>()
      answers.push(answer)
      input.write(`${JSON.stringify({ execute: name, ...(args && { arguments: args }) })}\n`)
      const late = setTimeout(() => fail(new FloorError(`QEMU does not answer ${name}.`)), answerTimeoutMs)
      return await answer.promise.finally(() => clearTimeout(late))
    },
    event(name) {
      const next = Promise.withResolvers<unknown>()
      next.promise.catch(() => undefined)
      events.push({ ...next, name })
      return next.promise
    },
  }
  const late = setTimeout(() => fail(new FloorError('QEMU does not greet.')), answerTimeoutMs)
  await greeted.promise.finally(() => clearTimeout(late))
  await qmp.command('qmp_capabilities')
  return qmp
}
