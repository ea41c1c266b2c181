/** Why a real machine ended, and what of its guest's last words is kept. */
import { memorySecrets, openGuestLink } from '@space/node/guest'
import { runCommand } from '@space/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { MachineDriver } from '../src/machines/machine.ts'
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

test('a guest whose kernel panics ends the machine, and the console says why', async () => {
  const spec = await subject.spec()
  const machine = await driver.boot(spec)
  subject.recordOf(spec.folder)
  const link = await openGuestLink({
    connect: (signal) => machine.guest(signal),
    secrets: memorySecrets(),
    budgets: { handshakeTimeoutMs: subject.bootTimeoutMs },
  })
  const panic = ['sh', '-c', 'echo 1 > /proc/sys/kernel/sysrq; echo c > /proc/sysrq-trigger']
  const running = runCommand(link.client, 'prcpanic', panic, { user: 'root' }).catch(() => 'cut off')
  const exit = await machine.exited
  expect([exit.reason, await running]).toEqual(['guest_panicked', 'cut off'])
  expect(exit.detail).toContain('Kernel panic')
  expect(await subject.leftovers(spec.folder)).toEqual([])
})

test('a device state that is none is refused with what QEMU said, and leaves nothing', async () => {
  const spec = await subject.spec()
  const machine = await driver.boot(spec)
  const { snapshot, disk } = await machine.save({ ...(await subject.saveTarget()), afterwards: 'stop' })
  const next = await subject.specOver(disk)
  const garbage = driver.restore(next, { ...snapshot, devices: '/etc/hostname' })
  await expect(garbage).rejects.toMatchObject({
    code: 'snapshot_unusable',
    message: expect.stringContaining('exit code 1'),
  })
  expect(await subject.leftovers(next.folder)).toEqual([])
})
