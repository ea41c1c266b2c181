/** "The VMM is not trusted either": what the kernel says of a running VMM, and what is left of it afterwards. */
import { execFileSync } from 'node:child_process'
import { constants, existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { groupMembers } from '../src/host/cgroups.ts'
import { getSeals, seals } from '../src/host/descriptors.ts'
import { HeldProcess } from '../src/host/pidfd.ts'
import { processesOf, readStat } from '../src/host/procfs.ts'
import type { Machine, MachineDriver, MachineSpec } from '../src/machines/machine.ts'
import { qemuDriver } from '../src/machines/qemu/index.ts'
import { type MachineRecord, writeRecord } from '../src/machines/qemu/record.ts'
import { namespacePath } from '../src/net/index.ts'
import { type QemuSubject, qemuSubject } from './fixture/qemu-subject.ts'

let subject: QemuSubject
let driver: MachineDriver
beforeAll(async () => {
  subject = await qemuSubject()
  driver = await subject.driver()
})
afterAll(async () => {
  await driver.stop()
  await subject.close()
})

function status(pid: number): Record<string, string> {
  const lines = readFileSync(`/proc/${pid}/status`, 'utf8').split('\n')
  return Object.fromEntries(lines.map((line) => line.split(/:\s*/, 2) as [string, string]))
}

/** Whether a uid could open a descriptor's file again for writing and then change it. */
function canWrite(pid: number, fd: number, uid: number): boolean {
  const path = `/proc/${pid}/fd/${fd}`
  const { mode, uid: owner } = statSync(path)
  const writable = (owner === uid && (mode & 0o200) !== 0) || (mode & 0o002) !== 0
  const access = Number.parseInt(
    /flags:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8'))?.[1] ?? '0',
    8,
  )
  if (!writable && (access & 3) === constants.O_RDONLY) return false
  const held = HeldProcess.open(pid)
  const copy = held?.takeDescriptor(fd)
  const sealed = copy !== undefined && (getSeals(copy.fd) & seals.write) !== 0
  copy?.close()
  held?.close()
  return !sealed
}

const anonymous = ['/memfd:space-memory (deleted)', '/memfd:space-stderr (deleted)']

function writableFiles(pid: number, uid: number): string[] {
  const open = readdirSync(`/proc/${pid}/fd`).map(Number)
  const files = open.filter((fd) => statSync(`/proc/${pid}/fd/${fd}`).isFile())
  const written = files.filter((fd) => canWrite(pid, fd, uid))
  return [...new Set(written.map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`)))].sort()
}

describe('a running VMM', () => {
  let spec: MachineSpec
  let machine: Machine
  let record: MachineRecord
  let pid = 0
  beforeAll(async () => {
    spec = await subject.spec()
    machine = await driver.boot(spec)
    record = subject.recordOf(spec.folder)
    pid = record.process?.pid ?? 0
  })
  afterAll(() => machine.close())

  test('has a uid of its own, no capability, no way to one, and a system call filter', async () => {
    const uid = String(record.slot.uid)
    expect(status(pid)['Uid']?.split('\t')).toEqual([uid, uid, uid, uid])
    expect(status(pid)['Gid']?.split('\t')).toEqual([uid, uid, uid, uid])
    expect(status(pid)['Groups']?.trim()).toBe('')
    const none = '0000000000000000'
    expect(status(pid)).toMatchObject({ CapInh: none, CapPrm: none, CapEff: none, CapAmb: none })
    expect(status(pid)).toMatchObject({ NoNewPrivs: '1', Seccomp: '2' })
    expect(await processesOf(record.slot.uid)).toEqual([pid])
  })

  test('stands in its own session and process group, with no core dumps', () => {
    const stat = readStat(pid)
    expect([stat?.processGroup, stat?.session]).toEqual([pid, pid])
    expect(readFileSync(`/proc/${pid}/limits`, 'utf8')).toMatch(/Max core file size\s+0\s+0/)
  })

  test('can write no file but its memory, its own disk layer and its bounded output', () => {
    expect(writableFiles(pid, record.slot.uid)).toEqual([...anonymous, spec.disk.writable].sort())
    expect(statSync(spec.disk.base).mode & 0o222).toBe(0)
  })

  test('has no descriptor of a folder, and its sockets lie where it cannot go', () => {
    const open = readdirSync(`/proc/${pid}/fd`)
    expect(open.filter((fd) => statSync(`/proc/${pid}/fd/${fd}`).isDirectory())).toEqual([])
    const { uid } = record.slot
    expect(() => execFileSync('ls', [spec.folder], { uid, gid: uid, stdio: 'pipe' })).toThrow(
      'Permission denied',
    )
    for (const name of ['qmp.sock', 'guest.sock'])
      expect(statSync(join(spec.folder, name)).mode & 0o777).toBe(0o600)
  })

  test('lives in a network with a loopback, one tap, and no way out', () => {
    const inode = (path: string): number => statSync(path).ino
    expect(inode(`/proc/${pid}/ns/net`)).toBe(inode(namespacePath(record.slot.namespace)))
    expect(inode(`/proc/${pid}/ns/net`)).not.toBe(inode('/proc/self/ns/net'))
    const devices = readFileSync(`/proc/${pid}/net/dev`, 'utf8')
      .split('\n')
      .slice(2)
      .map((line) => line.split(':')[0]?.trim())
    expect(devices.filter(Boolean).sort()).toEqual(['lo', 'tap0'])
    const routes = readFileSync(`/proc/${pid}/net/route`, 'utf8').trim().split('\n').slice(1)
    expect(routes.map((line) => line.split('\t').slice(0, 2))).toEqual([
      ['tap0', expect.stringMatching(/FEA9$/)],
    ])
  })

  test('is held to limits of memory, time and processes', async () => {
    const { groupFolders } = record.slot
    expect(await groupMembers(groupFolders)).toEqual([pid])
    const read = (...names: string[]): string | undefined =>
      names
        .flatMap((name) => groupFolders.map((folder) => join(folder, name)))
        .filter((path) => existsSync(path))
        .map((path) => readFileSync(path, 'utf8').trim())[0]
    const memory = Number(read('memory.max', 'memory.limit_in_bytes'))
    expect(memory).toBeGreaterThan(512 * 2 ** 20)
    expect(memory).toBeLessThanOrEqual(1024 * 2 ** 20)
    expect(read('cpu.max', 'cpu.cfs_quota_us')).toMatch(/^150000/)
    expect(read('pids.max')).toBe('128')
  })

  test('has a guest without virtualisation of its own', () => {
    const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    expect(line[line.indexOf('-cpu') + 1]).toMatch(/-(svm|vmx)/)
  })
})

describe('a restored VMM', () => {
  test('can write neither the memory nor the layers it shares, and root has back what another wrote', async () => {
    const first = await driver.boot(await subject.spec())
    const { snapshot, disk } = await first.save({ ...(await subject.saveTarget()), afterwards: 'stop' })
    const spec = await subject.specOver(disk)
    const machine = await driver.restore(spec, snapshot)
    const { process, slot } = subject.recordOf(spec.folder)
    expect(writableFiles(process?.pid ?? 0, slot.uid)).toEqual([anonymous[1], spec.disk.writable].sort())
    for (const path of [snapshot.memory, snapshot.devices, ...disk.frozen])
      expect([statSync(path).uid, statSync(path).mode & 0o777]).toEqual([0, 0o444])
    await machine.close()
    expect(statSync(spec.disk.writable).uid).toBe(0)
    expect(await subject.leftovers(spec.folder)).toEqual([])
  })
})

describe('after a crash of the node', () => {
  test('at any point of a start, clear finds everything', async () => {
    const spec = await subject.spec()
    const machine = await driver.boot(spec)
    const record = subject.recordOf(spec.folder)
    await machine.release()
    const { process: _, memory: __, ...slotOnly } = record
    writeRecord(spec.folder, { ...slotOnly, stage: 'starting' })
    const next = await subject.driver()
    expect(await next.adopt(spec)).toBeUndefined()
    expect(await subject.leftovers(spec.folder)).toEqual([])
    await next.stop()
  })

  test('machines that waited are ended by the next start, and a machine whose folder is gone too', async () => {
    const lost = await subject.spec()
    const machine = await driver.boot(lost)
    const record = subject.recordOf(lost.folder)
    await machine.release()
    await rm(lost.folder, { recursive: true })
    const ready = join(subject.home, 'node', 'ready', 'left')
    await mkdir(ready, { recursive: true })
    const next = await qemuDriver(subject.options)
    expect(await subject.leftovers(lost.folder)).toEqual([])
    expect(await processesOf(record.slot.uid)).toEqual([])
    expect(existsSync(ready)).toBe(false)
    await next.stop()
  })
})

describe('VMMs started ahead', () => {
  test('wait unowned, and all go with their driver', async () => {
    const own = await qemuDriver(subject.options)
    await own.keepReady({ vcpus: 1, memoryMib: 512 }, 1)
    const waiting = readdirSync(join(subject.home, 'node', 'ready'))
    expect(waiting).toHaveLength(1)
    const record = subject.recordOf(join(subject.home, 'node', 'ready', waiting[0] ?? ''))
    expect(statSync(`/proc/${record.process?.pid}/exe`, { throwIfNoEntry: false })).toBeDefined()
    await own.stop()
    expect(await processesOf(record.slot.uid)).toEqual([])
    expect(readdirSync(join(subject.home, 'node', 'ready'))).toEqual([])
    expect(existsSync(namespacePath(record.slot.namespace))).toBe(false)
  })
})
