import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  findControllers,
  groupFolders,
  groupMembers,
  hostControllers,
  joinGroup,
  limitGroup,
  limitWrites,
  makeGroup,
  removeGroup,
} from '../src/host/cgroups.ts'
import { createMemfd, Descriptor, keepDescriptorsHere } from '../src/host/descriptors.ts'
import { HeldProcess } from '../src/host/pidfd.ts'
import { parseStat, processesOf, readStat } from '../src/host/procfs.ts'
import { startProcess } from '../src/host/start.ts'
import { ExitWatch } from '../src/machines/qemu/exit-watch.ts'

const uid = 2_100_004_000

function statusOf(pid: number): Record<string, string> {
  const lines = readFileSync(`/proc/${pid}/status`, 'utf8').split('\n')
  return Object.fromEntries(lines.map((line) => line.split(/:\s*/, 2) as [string, string]))
}

async function eventually(holds: () => boolean): Promise<void> {
  for (let waitedMs = 0; !holds(); waitedMs += 10) {
    if (waitedMs > 10_000) throw new TypeError('it did not happen within ten seconds')
    await delay(10)
  }
}

describe('what the kernel says of a process', () => {
  it('is read right whatever its name is', () => {
    const tail = `S 1 77 78 0 -1 0 0 0 0 0 150 50 ${'0 '.repeat(6)}4242 ${'0 '.repeat(20)}`
    for (const name of ['sh', 'a b', ') S 9 9 9', '((', 'x)\n(y'])
      expect(parseStat(`12 (${name}) ${tail}`)).toEqual({
        state: 'S',
        processGroup: 77,
        session: 78,
        cpuTicks: 200,
        startTicks: 4242,
      })
    for (const text of ['', 'x', '1 (sh', '1 (sh) S 1']) expect(parseStat(text)).toBeUndefined()
  })
})

describe('a held process', () => {
  it('is told from a later one of the same pid by its start time', async () => {
    const child = spawn('sleep', ['100'])
    const pid = child.pid ?? 0
    using held = HeldProcess.open(pid)
    expect(held?.identity).toEqual({ pid, startTicks: readStat(pid)?.startTicks })
    expect(HeldProcess.open(pid, (held?.identity.startTicks ?? 0) + 1)).toBeUndefined()
    held?.signal('SIGKILL')
    await once(child, 'exit')
    expect(held?.signal('SIGKILL')).toBe(false)
    expect(HeldProcess.open(pid)).toBeUndefined()
  })

  it('is seen to end, and those that live are not', async () => {
    const watch = new ExitWatch()
    const children = [spawn('sleep', ['100']), spawn('sleep', ['100'])]
    const [first, second] = children.map((child) => HeldProcess.open(child.pid ?? 0))
    if (first === undefined || second === undefined) throw new TypeError('no process')
    let secondEnded = false
    const ended = watch.ended(first)
    void watch.ended(second).then(() => {
      secondEnded = true
    })
    first.signal('SIGKILL')
    await ended
    expect(secondEnded).toBe(false)
    second.signal('SIGKILL')
    await eventually(() => secondEnded)
    for (const held of [first, second]) held.close()
  })

  it('gives a copy of one of its own descriptors', async () => {
    const child = spawn('sleep', ['100'], { stdio: ['ignore', openSync('/etc/hostname', 'r'), 'ignore'] })
    using held = HeldProcess.open(child.pid ?? 0)
    using copy = held?.takeDescriptor(1)
    expect(readlinkSync(`/proc/self/fd/${copy?.fd}`)).toBe('/etc/hostname')
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
})

describe('a program nobody trusts', () => {
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'space-start-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  function start(program: string, args: string[], output: Descriptor, descriptors: number[] = []) {
    keepDescriptorsHere()
    return startProcess({
      program,
      args,
      uid,
      gid: uid,
      networkNamespace: '/proc/self/ns/net',
      descriptors,
      output: output.fd,
      limits: { fileBytes: 1 << 20, openFiles: 32, threads: 8 },
    })
  }

  it('runs as its own uid, without capabilities, groups, a way to new rights, or our group', async () => {
    using output = createMemfd('out')
    const child = start('sleep', ['100'], output)
    await eventually(() => statusOf(child.pid)['Name'] === 'sleep')
    const id = String(uid)
    expect(statusOf(child.pid)).toMatchObject({
      NoNewPrivs: '1',
      CapEff: '0000000000000000',
      CapPrm: '0000000000000000',
    })
    expect(statusOf(child.pid)['Uid']?.split('\t')).toEqual([id, id, id, id])
    expect(statusOf(child.pid)['Gid']?.split('\t')).toEqual([id, id, id, id])
    expect(statusOf(child.pid)['Groups']?.trim()).toBe('')
    const stat = readStat(child.pid)
    expect([stat?.processGroup, stat?.session]).toEqual([child.pid, child.pid])
    expect(await processesOf(uid)).toContain(child.pid)
    const limits = await readFile(`/proc/${child.pid}/limits`, 'utf8')
    expect(limits).toMatch(/Max core file size\s+0\s+0/)
    expect(limits).toMatch(/Max file size\s+1048576\s+1048576/)
    child.kill('SIGKILL')
    await once(child, 'exit')
  })

  it('has the descriptors meant for it and none of ours, not even one our parent leaked into us', async () => {
    using output = createMemfd('out')
    using given = new Descriptor(openSync('/etc/hostname', 'r'))
    const child = start('sleep', ['100'], output, [given.fd])
    await eventually(() => statusOf(child.pid)['Name'] === 'sleep')
    expect(readdirSync(`/proc/${child.pid}/fd`).map(Number)).toEqual([0, 1, 2, 3])
    expect(readlinkSync(`/proc/${child.pid}/fd/3`)).toBe('/etc/hostname')
    child.kill('SIGKILL')
    await once(child, 'exit')
  })

  it('that is missing ends at once and says so in its output', async () => {
    using output = createMemfd('out')
    const child = start('no-such-program', [], output)
    const [code] = (await once(child, 'exit')) as [number]
    expect(code).toBe(127)
    expect(readFileSync(`/proc/self/fd/${output.fd}`, 'utf8')).toContain('no-such-program')
  })
})

describe('control groups', () => {
  const v1 =
    'cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n'
  const v2 = 'cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n'

  it('are found in version 1, in version 2, and where a host mixes them', () => {
    expect(findControllers(v2, () => 'cpu memory pids io').map(({ version }) => version)).toEqual([2, 2, 2])
    expect(findControllers(v1 + v2, () => 'pids')).toEqual([
      { controller: 'memory', version: 1, mount: '/sys/fs/cgroup/memory' },
      { controller: 'cpu', version: 1, mount: '/sys/fs/cgroup/cpu' },
      { controller: 'pids', version: 2, mount: '/sys/fs/cgroup' },
    ])
    expect(findControllers(v1, () => '').map(({ controller }) => controller)).toEqual(['memory', 'cpu'])
  })

  it('get the same limits in the words of either version', () => {
    const limits = { memoryBytes: 1 << 30, cpus: 1.5, tasks: 128 }
    expect(
      limitWrites(
        findControllers(v2, () => 'cpu memory pids'),
        '7',
        limits,
      ),
    ).toEqual([
      ['/sys/fs/cgroup/space/7/memory.max', '1073741824'],
      ['/sys/fs/cgroup/space/7/cpu.max', '150000 100000'],
      ['/sys/fs/cgroup/space/7/pids.max', '128'],
    ])
    expect(
      limitWrites(
        findControllers(v1, () => ''),
        '7',
        limits,
      ),
    ).toEqual([
      ['/sys/fs/cgroup/memory/space/7/memory.limit_in_bytes', '1073741824'],
      ['/sys/fs/cgroup/cpu/space/7/cpu.cfs_period_us', '100000'],
      ['/sys/fs/cgroup/cpu/space/7/cpu.cfs_quota_us', '150000'],
    ])
  })

  it('hold a process, are made once, and go when it has ended', async () => {
    const mounts = hostControllers()
    const name = `test-${process.pid}`
    const folders = groupFolders(mounts, name)
    makeGroup(mounts, name)
    expect(() => makeGroup(mounts, name)).toThrow('EEXIST')
    await limitGroup(mounts, name, { memoryBytes: 64 << 20, cpus: 0.5, tasks: 16 })
    const weight = (): number => {
      const cpu = mounts.find(({ controller }) => controller === 'cpu')
      const file = cpu?.version === 2 ? 'cpu.weight' : 'cpu.shares'
      return Number(readFileSync(join(cpu?.mount ?? '', 'space', file), 'utf8'))
    }
    const groups = readdirSync(join(folders[0] ?? '', '..'), { withFileTypes: true }).filter((entry) =>
      entry.isDirectory(),
    )
    expect(weight() / groups.length).toBeGreaterThan(mounts.some(({ version }) => version === 2) ? 70 : 700)
    const child = spawn('sleep', ['100'])
    await joinGroup(folders, child.pid ?? 0)
    expect(await groupMembers(folders)).toEqual([child.pid])
    const removed = removeGroup(folders)
    await delay(50)
    child.kill('SIGKILL')
    await removed
    await removeGroup(folders)
    expect(await groupMembers(folders)).toEqual([])
  })
})
