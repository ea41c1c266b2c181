import { stat } from 'node:fs/promises'
import { cpus } from 'node:os'
import { kvmMissing } from '../host/kvm.ts'
import { bad, type Check, ok } from './check.ts'

/** The processor, and which environment runs sandboxes on it and why. */
export async function processorChecks(machine: string): Promise<Check[]> {
  const count = cpus().length
  const model = cpus()[0]?.model ?? 'unknown'
  const processor =
    process.arch === 'x64'
      ? ok('cpu', 'Processor', `${count} × ${model}`)
      : bad('fail', 'cpu', 'Processor', `${process.arch} is not supported`, 'Run SPACE on an x86-64 machine.')
  return [processor, await environmentCheck(machine)]
}

async function environmentCheck(machine: string): Promise<Check> {
  const title = 'Environment'
  if (!['', 'qemu'].includes(machine))
    return bad(
      'fail',
      'environment',
      title,
      `SPACE_MACHINE=${machine} names no VMM this release drives`,
      'unset SPACE_MACHINE',
    )
  const forced = machine === '' ? '' : ', SPACE_MACHINE forces QEMU'
  const missing = kvmMissing()
  if (missing === undefined) return ok('environment', title, `qemu-kvm: /dev/kvm works${forced}`)
  const emulated = `qemu-tcg, emulated and several times slower: ${missing}${forced}`
  const device = await stat('/dev/kvm').catch(() => undefined)
  if (device === undefined) return ok('environment', title, emulated)
  return bad(
    'warn',
    'environment',
    title,
    emulated,
    'Switch virtualisation on in the firmware, or nested virtualisation in the cloud.',
  )
}
