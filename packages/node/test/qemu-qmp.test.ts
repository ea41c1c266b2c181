import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { dialIn } from '../src/host/unix-sockets.ts'
import { Qmp } from '../src/machines/qemu/qmp.ts'
import { maxLineBytes, parseMessage, QmpLines } from '../src/machines/qemu/qmp-lines.ts'

const greeting =
  '{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}}, "capabilities": []}}\r\n'

describe('lines of a VMM', () => {
  it('are found however the bytes are cut', () => {
    const text = `${greeting}{"return": {"é": 1}, "id": 4}\r\n\r\n{"event": "STOP", "data": {}}\n`
    const whole = new QmpLines().push(Buffer.from(text))
    const lines = new QmpLines()
    const cut = [...Buffer.from(text)].flatMap((byte) => lines.push(Buffer.from([byte])))
    expect(cut).toEqual(whole)
    expect(whole).toEqual([
      { kind: 'greeting', version: '7.2.22' },
      { kind: 'return', id: 4, value: { é: 1 } },
      { kind: 'event', name: 'STOP', data: {} },
    ])
  })

  it('may have 1 MiB and not a byte more', () => {
    const lines = new QmpLines()
    expect(lines.push(Buffer.alloc(maxLineBytes, ' '))).toEqual([])
    expect(() => lines.push(Buffer.from(' '))).toThrow('1 MiB')
  })

  it('that are no answers are a protocol error, never a crash', () => {
    for (const line of [
      'x',
      '[]',
      '3',
      'null',
      '{}',
      '{"id": "1", "return": 1}',
      '{"error": {"desc": "bad"}}',
    ])
      expect(() => parseMessage(line)).toThrow('vmm_protocol')
  })
})

describe('the control channel', () => {
  let folder = ''
  let server: Server
  let peer: Promise<Socket>

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'space-qmp-'))
    server = createServer()
    peer = new Promise((resolve) => server.once('connection', resolve))
    await new Promise<void>((resolve) => server.listen(join(folder, 'qmp.sock'), resolve))
  })
  afterEach(async () => {
    ;(await peer).destroy()
    server.close()
    await rm(folder, { recursive: true })
  })

  /** A VMM that answers every command by what `answer` makes of it. */
  async function speak(answer: (command: string, id: number) => string): Promise<void> {
    const socket = await peer
    socket.write(greeting)
    socket.on('data', (bytes) => {
      for (const line of bytes.toString().trim().split('\r\n')) {
        const { execute, id } = JSON.parse(line) as { execute: string; id: number }
        socket.write(answer(execute, id))
      }
    })
  }

  it('pairs answers with commands, one at a time, and tells what was refused', async () => {
    const qmp = new Qmp(dialIn(folder, 'qmp.sock'))
    await speak((command, id) =>
      command === 'bad'
        ? `{"error": {"class": "GenericError", "desc": "no such thing"}, "id": ${id}}\n`
        : `{"return": "${command}", "id": ${id - 1000}}\n{"return": "${command}", "id": ${id}}\n`,
    )
    expect(await qmp.negotiate()).toBe('7.2.22')
    const all = await Promise.allSettled(['a', 'bad', 'b'].map((command) => qmp.execute(command)))
    expect(all.map((one) => (one.status === 'fulfilled' ? one.value : one.reason.message))).toEqual([
      'a',
      'vmm_refused: bad: no such thing',
      'b',
    ])
    qmp.close()
    await qmp.closed
    await expect(qmp.execute('a')).rejects.toMatchObject({ code: 'machine_closed' })
  })

  it('passes events on, also between a command and its answer', async () => {
    const qmp = new Qmp(dialIn(folder, 'qmp.sock'))
    await speak((_, id) => `{"event": "RESUME"}\n{"return": {}, "id": ${id}}\n`)
    const seen: string[] = []
    qmp.onEvent(({ name }) => seen.push(name))
    await qmp.negotiate()
    expect(seen).toEqual(['RESUME'])
    qmp.close()
  })

  it('ends for a VMM that does not answer', async () => {
    const qmp = new Qmp(dialIn(folder, 'qmp.sock'))
    await speak((command, id) => (command === 'qmp_capabilities' ? `{"return": {}, "id": ${id}}\n` : ''))
    await qmp.negotiate()
    await expect(qmp.execute('stop', {}, { timeoutMs: 50 })).rejects.toMatchObject({ code: 'vmm_timeout' })
    await qmp.closed
    await expect(qmp.execute('cont')).rejects.toMatchObject({ code: 'vmm_timeout' })
  })

  it('ends for a VMM that floods it', async () => {
    const qmp = new Qmp(dialIn(folder, 'qmp.sock'))
    await speak((_, id) => `{"return": {}, "id": ${id}}\n`)
    await qmp.negotiate()
    const event = Buffer.from('{"event": "FLOOD", "data": {}}\n'.repeat(10_000))
    const socket = await peer
    socket.on('error', () => undefined)
    for (let sent = 0; sent < 8 * 2 ** 20; sent += event.length) socket.write(event)
    await qmp.closed
    await expect(qmp.execute('cont')).rejects.toThrow('more QMP bytes')
  })

  it('keeps at most 64 commands waiting', async () => {
    const qmp = new Qmp(dialIn(folder, 'qmp.sock'))
    await speak((command, id) => (command === 'qmp_capabilities' ? `{"return": {}, "id": ${id}}\n` : ''))
    await qmp.negotiate()
    const waiting = Array.from({ length: 64 }, () => qmp.execute('stop'))
    await expect(qmp.execute('one too many')).rejects.toThrow('too many')
    qmp.close()
    expect((await Promise.allSettled(waiting)).every(({ status }) => status === 'rejected')).toBe(true)
  })
})
