import { setTimeout as delay } from 'node:timers/promises'
import { Code, ConnectError } from '@connectrpc/connect'
import { StartFailed_Reason } from '@space/contract/guest'
import { attachRequests, type GuestLink, memorySecrets, openGuestLink } from '@space/node/guest'
import { FakeHost, fakeDriver, joinCommand, runCommand, startCommand } from '@space/testkit'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

let host: FakeHost
let link: GuestLink
beforeEach(async () => {
  host = new FakeHost()
  const machine = await fakeDriver(host).boot({
    folder: '/none/fake-guest',
    sandboxId: 'sbxtest',
    shape: { vcpus: 1, memoryMib: 256 },
    guestImage: { vmlinux: '', initramfs: '', modulesDrive: '', kernelRelease: '', digest: 'fake' },
    disk: { base: '', frozen: [], writable: '/none/disk' },
  })
  link = await openGuestLink({ connect: (signal) => machine.guest(signal), secrets: memorySecrets() })
})
afterEach(() => host.close())

describe('a start the guest refuses says why', () => {
  const cases = [
    ['no such program', { argv: ['nope'] }, StartFailed_Reason.PROGRAM_NOT_FOUND, 'ENOENT'],
    ['no program at all', { argv: ['/etc/passwd'] }, StartFailed_Reason.PROGRAM_NOT_EXECUTABLE, 'EACCES'],
    ['no interpreter', { argv: ['bad-interpreter'] }, StartFailed_Reason.BAD_INTERPRETER, 'ENOENT'],
    ['no such folder', { argv: ['true'], cwd: '/nowhere' }, StartFailed_Reason.BAD_CWD, 'ENOENT'],
    ['no such user', { argv: ['true'], user: 'nobody-here' }, StartFailed_Reason.UNKNOWN_USER, 'ENOENT'],
    [
      'one string too long',
      { argv: ['true', 'x'.repeat(131_072)] },
      StartFailed_Reason.ARGUMENTS_TOO_LONG,
      'E2BIG',
    ],
  ] as const

  test.each(cases)('%s', async (_name, start, reason, errno) => {
    const requests = attachRequests({
      case: 'start',
      value: { ...start, argv: [...start.argv], processId: 'prcx' },
    })
    const answers = await Array.fromAsync(link.client.attach(requests))
    requests.end()
    expect(answers.map(({ kind }) => kind)).toMatchObject([{ case: 'startFailed', value: { reason, errno } }])
  })
})

describe('a process', () => {
  test('started twice runs once', async () => {
    const first = await runCommand(link.client, 'prcecho', ['echo', 'once'])
    await startCommand(link.client, 'prcseq', ['seq', '1', '3'])
    const again = await runCommand(link.client, 'prcseq', ['seq', '1', '3'])
    expect([first.stdout.toString(), again.stdout.toString()]).toEqual(['once\n', '1\n2\n3\n'])
    expect(host.machines[0]?.guest.processes.size).toBe(2)
  })

  test('ends by the signal it was sent, unless it ignores it', async () => {
    await startCommand(link.client, 'prcsleep', ['sleep', '100'])
    expect(await link.client.signal({ processId: 'prcsleep', signal: 15 })).toMatchObject({ delivered: true })
    expect((await joinCommand(link.client, 'prcsleep', 0n)).exit?.signal).toBe(15)
    expect(await link.client.signal({ processId: 'prcsleep', signal: 15 })).toMatchObject({
      delivered: false,
    })
    await startCommand(link.client, 'prcstubborn', ['stubborn', '100'])
    await link.client.signal({ processId: 'prcstubborn', signal: 15 })
    await delay(20)
    expect((await link.client.usage({})).processes).toBe(1)
    await link.client.signal({ processId: 'prcstubborn', signal: 9 })
    expect((await joinCommand(link.client, 'prcstubborn', 0n)).exit?.signal).toBe(9)
  })

  test('waits once 1 MiB of its output is not acknowledged, and not before', async () => {
    await startCommand(link.client, 'prcprint', ['print', '3000000', '1000'])
    const next = async () =>
      (await link.client.info({})).processes.map(({ nextOffset }) => Number(nextOffset))
    await expect.poll(next).toEqual([1_048_000])
    await delay(30)
    expect(await next()).toEqual([1_048_000])
    expect((await joinCommand(link.client, 'prcprint', 0n)).exit?.finalOffset).toBe(3_000_000n)
  })

  test('past its time is killed, and says so', async () => {
    const start = { processId: 'prcslow', argv: ['sleep', '100'], timeoutMs: 30n }
    const requests = attachRequests({ case: 'start', value: start })
    const answers = await Array.fromAsync(link.client.attach(requests))
    requests.end()
    expect(answers.at(-1)?.kind).toMatchObject({ case: 'exited', value: { signal: 9, timedOut: true } })
  })

  test('is forgotten when it has ended, and not before', async () => {
    await startCommand(link.client, 'prcsleep', ['sleep', '100'])
    await runCommand(link.client, 'prctrue', ['true'])
    await link.client.forget({ processIds: ['prcsleep', 'prctrue'] })
    expect((await link.client.info({})).processes.map(({ processId }) => processId)).toEqual(['prcsleep'])
  })

  test('frozen does nothing until it is thawed', async () => {
    await link.client.freeze({})
    expect(host.machines[0]?.guest.running()).toBe(false)
    const refused = runCommand(link.client, 'prctrue', ['true'])
    await expect(refused).rejects.toMatchObject({ code: Code.FailedPrecondition })
    await link.client.thaw({})
    expect((await runCommand(link.client, 'prctrue', ['true'])).exit?.exitCode).toBe(0)
  })
})

describe('what a node must not send ends the call', () => {
  const cases = [
    ['stdin behind a gap', Code.FailedPrecondition, { argv: ['cat'], stdinPipe: true }, 5n],
    ['stdin where there is none', Code.InvalidArgument, { argv: ['sleep', '9'], stdinPipe: false }, 0n],
  ] as const

  test.each(cases)('%s', async (_name, code, start, offset) => {
    const requests = attachRequests({
      case: 'start',
      value: { ...start, argv: [...start.argv], processId: 'prcx' },
    })
    void requests.stdin(offset, Buffer.from('x'))
    const error = await Array.fromAsync(link.client.attach(requests)).catch((reason: unknown) => reason)
    expect(ConnectError.from(error).code).toBe(code)
  })

  test('a join beyond the output', async () => {
    await startCommand(link.client, 'prccat', ['cat'], { stdinPipe: true })
    await expect(joinCommand(link.client, 'prccat', 1n)).rejects.toMatchObject({ code: Code.OutOfRange })
    await expect(joinCommand(link.client, 'prcnone', 0n)).rejects.toMatchObject({ code: Code.NotFound })
  })
})
