import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { copyData } from '../src/host/copy.ts'
import { addSeals, createMemfd, type Descriptor, dataExtents, openToRead } from '../src/host/descriptors.ts'
import { dialIn, listenIn, sendDescriptors } from '../src/host/unix-sockets.ts'
import { isMemory, MemoryFiles } from '../src/machines/qemu/memory-files.ts'
import { createStderrFile, readStderr, stderrBytes } from '../src/machines/qemu/stderr-file.ts'

const mib = 2 ** 20
let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'space-files-'))
})
afterAll(() => rm(folder, { recursive: true }))

/** A sparse file of 64 MiB with two pieces of data. */
function sparse(name: string): string {
  const path = join(folder, name)
  writeFileSync(path, '')
  truncateSync(path, 64 * mib)
  const fd = openSync(path, 'r+')
  writeSync(fd, 'first', 4 * mib)
  writeSync(fd, 'second', 40 * mib + 5)
  return path
}

describe('copying a sparse file', () => {
  it('copies its data and keeps its holes', async () => {
    using from = openToRead(sparse('one'))
    using to = createMemfd('copy')
    ftruncateSync(to.fd, 64 * mib)
    const copied = await copyData(from.fd, to.fd, 64 * mib)
    expect(copied).toBeLessThan(mib)
    expect([...dataExtents(to.fd, 64 * mib)]).toHaveLength(2)
    const bytes = readFileSync(`/proc/self/fd/${to.fd}`)
    expect(bytes.equals(readFileSync(join(folder, 'one')))).toBe(true)
  })

  it('leaves pages of zeroes out when asked to, also at the end and where a page is cut', async () => {
    const path = join(folder, 'zeroes')
    const bytes = Buffer.alloc(64 * 1024 + 100)
    bytes.write('begin', 0)
    bytes.write('middle', 30_000)
    bytes.write('end', 64 * 1024 + 90)
    writeFileSync(path, bytes)
    using from = openToRead(path)
    using to = createMemfd('copy')
    ftruncateSync(to.fd, bytes.length)
    expect(await copyData(from.fd, to.fd, bytes.length, { sparse: true })).toBe(2 * 4096 + 100)
    expect(readFileSync(`/proc/self/fd/${to.fd}`).equals(bytes)).toBe(true)
  })

  it('stops when told to', async () => {
    using from = openToRead(sparse('two'))
    using to = createMemfd('copy')
    await expect(copyData(from.fd, to.fd, 64 * mib, { signal: AbortSignal.abort() })).rejects.toThrow(
      'aborted',
    )
  })
})

describe('memory of a snapshot', () => {
  it('is the same for all machines, and nobody who holds it can change, grow or cut it', async () => {
    const files = new MemoryFiles()
    const path = sparse('memory')
    using first = await files.of(path, 64 * mib)
    using second = await files.of(path, 64 * mib)
    const inode = ({ fd }: Descriptor): number => statSync(`/proc/self/fd/${fd}`).ino
    expect(inode(first)).toBe(inode(second))
    expect(isMemory(first, 64 * mib, true)).toBe(true)
    const reopened = openSync(`/proc/self/fd/${first.fd}`, 'r+')
    expect(() => writeSync(reopened, 'x', 0)).toThrow('EPERM')
    for (const size of [0, 128 * mib]) expect(() => ftruncateSync(reopened, size)).toThrow('EPERM')
    expect(() => addSeals(reopened, 0x8)).toThrow('EPERM')
    expect(readFileSync(`/proc/self/fd/${second.fd}`).equals(readFileSync(path))).toBe(true)
    files.close()
  })

  it('of another size than the machine is unusable', async () => {
    const files = new MemoryFiles()
    await expect(files.of(sparse('small'), 128 * mib)).rejects.toMatchObject({ code: 'snapshot_unusable' })
    files.close()
  })

  it('is read anew when the file is another one', async () => {
    const files = new MemoryFiles()
    const path = sparse('changing')
    ;(await files.of(path, 64 * mib)).close()
    await rm(path)
    writeFileSync(path, 'other')
    truncateSync(path, 64 * mib)
    using again = await files.of(path, 64 * mib)
    expect(readFileSync(`/proc/self/fd/${again.fd}`).subarray(0, 5).toString()).toBe('other')
    files.close()
  })
})

describe("a VMM's output", () => {
  it('is kept up to its bound and cannot pass it', () => {
    using file = createStderrFile()
    expect(writeSync(file.fd, Buffer.alloc(stderrBytes - 4, 'a'), 0)).toBe(stderrBytes - 4)
    expect(() => writeSync(file.fd, Buffer.alloc(8, 'b'), 0, 8, stderrBytes)).toThrow()
    expect(readStderr(file)).toHaveLength(stderrBytes - 4)
    expect(statSync(`/proc/self/fd/${file.fd}`).size).toBe(stderrBytes)
  })

  it('carries no control characters into a log', () => {
    using file = createStderrFile()
    writeSync(file.fd, 'a\x1b[2Jb\nc\x07')
    expect(readStderr(file)).toBe('a?[2Jb\nc?')
  })
})

describe('sockets in a folder', () => {
  it('are made and dialled in folders longer than a socket path may be, for root alone', async () => {
    const deep = join(folder, 'x'.repeat(100), 'y'.repeat(100))
    mkdirSync(deep, { recursive: true })
    using listener = listenIn(deep, 'a.sock')
    expect(listener.fd).toBeGreaterThan(2)
    expect(statSync(join(deep, 'a.sock')).mode & 0o777).toBe(0o600)
    const { socket } = dialIn(deep, 'a.sock')
    socket.destroy()
    expect(() => dialIn(deep, 'b.sock')).toThrow('ENOENT')
  })

  it('carry open descriptors to a process that could not open them', async () => {
    writeFileSync(join(folder, 'secret'), 'for root', { mode: 0o600 })
    using listener = listenIn(folder, 'fds.sock')
    const receive = [
      'import array, os, socket',
      's = socket.socket(fileno=3)',
      'c, _ = s.accept()',
      'data, control, _, _ = c.recvmsg(100, socket.CMSG_SPACE(8))',
      'fds = array.array("i"); fds.frombytes(control[0][2])',
      'print(data.decode(), len(fds), os.pread(fds[0], 100, 0).decode())',
    ].join('\n')
    const child = spawn('python3', ['-c', receive], { stdio: ['ignore', 'pipe', 'inherit', listener.fd] })
    let printed = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      printed += chunk.toString()
    })
    const { socket, fd } = dialIn(folder, 'fds.sock')
    using secret = openToRead(join(folder, 'secret'))
    using other = openToRead('/dev/null')
    sendDescriptors(fd, Buffer.from('take these'), [secret.fd, other.fd])
    await once(child, 'close')
    expect(printed).toBe('take these 2 for root\n')
    socket.destroy()
  })
})
