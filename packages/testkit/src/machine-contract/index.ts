/**
 * What every machine driver promises, run against the real agent protocol. A driver that passes is one a node can use;
 * nothing above a driver knows which one it is.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Machine, MachineDriver, SnapshotIdentity } from '@space/node/machine'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { joinCommand, runCommand, startCommand } from '../guest-commands.ts'
import {
  type Booted,
  boot,
  type ContractSubject,
  freeze,
  linkTo,
  restore,
  streamClosed,
  wake,
} from './bench.ts'

export type { ContractSubject } from './bench.ts'

/** Lines that are more than an agent keeps unacknowledged, and their bytes. */
const manyLines = 400_000
const maxUnacknowledgedBytes = 1_048_576

/** Registers the contract's tests for one driver. */
export function machineContract(name: string, prepare: () => Promise<ContractSubject>): void {
  describe(`machine contract: ${name}`, () => {
    let subject: ContractSubject
    let driver: MachineDriver
    const machines = new Set<Machine>()

    beforeAll(async () => {
      subject = await prepare()
      driver = await subject.driver()
    })
    afterEach(async () => {
      for (const machine of machines) await machine.close()
      machines.clear()
    })
    afterAll(async () => {
      await driver?.stop()
      await subject?.close()
    })

    async function booted(): Promise<Booted> {
      const result = await boot(subject, driver)
      machines.add(result.machine)
      return result
    }

    async function restored(...given: Parameters<typeof restore>): Promise<Booted> {
      const result = await restore(...given)
      machines.add(result.machine)
      return result
    }

    test('a booted machine runs commands and passes their bytes on exactly', async () => {
      const { link } = await booted()
      expect(link.hello.protocolVersion).toBe(1)
      expect(link.hello.bootId).toMatch(/^[0-9a-f-]{36}$/)
      const listed = await runCommand(link.client, 'prcseq', ['seq', '1', '50000'])
      expect(listed.stdout.equals(lines(1, 50_000))).toBe(true)
      expect(listed.exit).toMatchObject({ exitCode: 0, signal: 0, finalOffset: BigInt(listed.stdout.length) })
      const mixed = await runCommand(link.client, 'prcmixed', ['sh', '-c', 'echo out; echo err >&2; exit 7'])
      expect([mixed.stdout.toString(), mixed.stderr.toString(), mixed.exit?.exitCode]).toEqual([
        'out\n',
        'err\n',
        7,
      ])
      const echoed = await runCommand(link.client, 'prccat', ['cat'], { stdin: 'a\0b\nc' })
      expect(echoed.stdout.toString()).toBe('a\0b\nc')
    })

    test('a paused machine does nothing, and goes on where it stood', async () => {
      const { machine, link } = await booted()
      await machine.pause()
      await machine.pause()
      const info = link.client.info({})
      expect(await Promise.race([info.then(() => 'answered'), delay(300, 'silent')])).toBe('silent')
      await machine.resume()
      await machine.resume()
      expect((await info).bootId).toBe(link.hello.bootId)
    })

    test('a new connection ends the one before, in the middle of a stalled stream too, and no byte is lost', async () => {
      const { machine, link, secrets } = await booted()
      await startCommand(link.client, 'prcstall', ['seq', '1', String(manyLines)])
      const unread = link.client.attach(stalled('prcstall'))[Symbol.asyncIterator]()
      await unread.next()
      await eventually(async () => (await offsetOf(link, 'prcstall')) > maxUnacknowledgedBytes - 65_536)
      const first = await machine.guest()
      const second = await linkTo(machine, secrets, subject.bootTimeoutMs)
      await streamClosed(first)
      expect((await link.closed).kind).toBe('lost')
      expect(second.hello.bootId).toBe(link.hello.bootId)
      expect(await offsetOf(second, 'prcstall')).toBeLessThanOrEqual(maxUnacknowledgedBytes)
      const rest = await joinCommand(second.client, 'prcstall', 1_000n)
      expect(rest.firstOffset).toBe(1_000n)
      expect(rest.output.equals(lines(1, manyLines).subarray(1_000))).toBe(true)
    })

    test('a connection made while the machine stands still is answered when it goes on', async () => {
      const { machine, link, secrets } = await booted()
      await machine.pause()
      const opening = linkTo(machine, secrets, subject.bootTimeoutMs)
      expect(await Promise.race([opening.then(() => 'answered'), delay(500, 'silent')])).toBe('silent')
      await machine.resume()
      expect((await opening).hello.bootId).toBe(link.hello.bootId)
    })

    test('a saved machine goes on, and its snapshots wake with the same processes, generation after generation', async () => {
      const original = await booted()
      await startCommand(original.link.client, 'prcstall', ['seq', '1', String(manyLines)])
      await startCommand(original.link.client, 'prccat', ['cat'], { stdinPipe: true })
      await eventually(
        async () => (await offsetOf(original.link, 'prcstall')) > maxUnacknowledgedBytes - 65_536,
      )
      await freeze(original.link)
      const first = await original.machine.save({ ...(await subject.saveTarget()), afterwards: 'resume' })
      await original.link.client.thaw({})
      expect(first.stoppedMs).toBeGreaterThan(0)
      expect(driver.refuses(first.snapshot.identity)).toBeUndefined()
      expect((await runCommand(original.link.client, 'prctrue', ['true'])).exit?.exitCode).toBe(0)
      await original.machine.close()

      const child = await restored(subject, driver, first, original.secrets)
      expect(child.link.hello.bootId).toBe(original.link.hello.bootId)
      expect(processIds(child)).toEqual(['prccat', 'prcstall'])
      await wake(child.link, 'sbxchild')
      expect((await runCommand(child.link.client, 'prchost', ['hostname'])).stdout.toString()).toBe(
        'sbxchild\n',
      )
      await child.link.client.forget({ processIds: ['prchost'] })
      await freeze(child.link)
      const second = await child.machine.save({ ...(await subject.saveTarget()), afterwards: 'stop' })
      expect((await child.machine.exited).reason).toBe('closed')

      const grandchild = await restored(subject, driver, second, child.secrets)
      expect(processIds(grandchild)).toEqual(['prccat', 'prcstall'])
      await wake(grandchild.link, 'sbxgrandchild')
      const output = await joinCommand(grandchild.link.client, 'prcstall', 0n)
      expect(output.output.equals(lines(1, manyLines))).toBe(true)
    })

    test('a snapshot of another VMM, device set or shape of CPU is refused, with the reason', async () => {
      const { machine, link } = await booted()
      await freeze(link)
      const { snapshot } = await machine.save({ ...(await subject.saveTarget()), afterwards: 'stop' })
      const { identity } = snapshot
      const others: SnapshotIdentity[] = [
        { ...identity, driver: 'other' },
        { ...identity, vmmVersion: '0.0' },
        { ...identity, deviceSet: identity.deviceSet + 1 },
        { ...identity, cpuModel: 'other' },
      ]
      for (const other of others) expect(driver.refuses(other)).toMatch(/./)
    })

    test('a machine outlives its node and is found again by its folder, with its processes', async () => {
      const { spec, machine, link, secrets } = await booted()
      await startCommand(link.client, 'prcsleep', ['sleep', '1000'])
      await machine.release()
      machines.delete(machine)
      expect((await link.closed).kind).toBe('lost')
      const next = await subject.driver()
      const adopted = await next.adopt(spec)
      if (adopted === undefined) throw new TypeError('the machine was not found')
      machines.add(adopted)
      const relinked = await linkTo(adopted, secrets, subject.bootTimeoutMs)
      expect(processIds({ link: relinked })).toEqual(['prcsleep'])
      await adopted.close()
      expect(await next.adopt(spec)).toBeUndefined()
      await next.stop()
    })

    test('clear removes a machine nobody holds, and finds nothing to do a second time', async () => {
      const { spec, machine, link } = await booted()
      await machine.release()
      machines.delete(machine)
      await link.close()
      const next = await subject.driver()
      await next.clear(spec.folder)
      await next.clear(spec.folder)
      expect(await subject.leftovers(spec.folder)).toEqual([])
      expect(await next.adopt(spec)).toBeUndefined()
      await next.stop()
    })

    test('close ends everything of the machine, twice too, and its streams with it', async () => {
      const { spec, machine, link } = await booted()
      const usage = await machine.usage()
      expect(usage.memoryBytes).toBeGreaterThan(0)
      expect(usage.cpuSeconds).toBeGreaterThan(0)
      await machine.close()
      await machine.close()
      expect((await machine.exited).reason).toBe('closed')
      expect((await link.closed).kind).toBe('lost')
      await expect(machine.guest()).rejects.toThrow()
      expect(await subject.leftovers(spec.folder)).toEqual([])
    })

    test('a machine says how it ended: shut down by the guest, or killed', async () => {
      const off = await booted()
      await off.link.client.shutdown({}).catch(() => 'the answer may be lost')
      expect((await off.machine.exited).reason).toBe('powered_off')
      const killed = await booted()
      await subject.kill(killed.machine)
      expect((await killed.machine.exited).reason).toMatch(/^vmm_(killed|died)$/)
      expect(await subject.leftovers(killed.spec.folder)).toEqual([])
    })

    test('a boot that is given up leaves nothing', async () => {
      const spec = await subject.spec()
      await expect(driver.boot(spec, AbortSignal.abort())).rejects.toThrow()
      expect(await driver.adopt(spec)).toBeUndefined()
      await driver.clear(spec.folder)
      expect(await subject.leftovers(spec.folder)).toEqual([])
    })
  })
}

/** What `seq` prints. */
function lines(first: number, last: number): Buffer {
  const numbers = Array.from({ length: last - first + 1 }, (_, index) => `${first + index}\n`)
  return Buffer.from(numbers.join(''))
}

async function* stalled(processId: string) {
  yield { kind: { case: 'join' as const, value: { processId, fromOffset: 0n } } }
  await new Promise(() => {
    // Never acknowledges anything.
  })
}

async function offsetOf({ client }: Booted['link'], processId: string): Promise<number> {
  const { processes } = await client.info({})
  return Number(processes.find((process) => process.processId === processId)?.nextOffset ?? -1)
}

function processIds({ link }: Pick<Booted, 'link'>): readonly string[] {
  return link.hello.processes.map(({ processId }) => processId).sort()
}

async function eventually(happened: () => Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 60_000
  while (!(await happened())) {
    if (performance.now() > deadlineMs) throw new TypeError('it did not happen within a minute')
    await delay(20)
  }
}
