import { constants, openSync, readFileSync } from 'node:fs'
import { Descriptor } from './descriptors.ts'
import { errorCode } from './host-error.ts'
import { libc } from './libc.ts'

const kvmGetApiVersion = 0xae00

/**
 * Why this host's KVM cannot be used, or undefined when it can. A `/dev/kvm` alone does not mean it: a host without
 * virtualisation in its CPU may offer one that runs only guests made for it.
 */
export function kvmMissing(): string | undefined {
  const flags = /^flags\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1]?.split(' ') ?? []
  if (!flags.includes('vmx') && !flags.includes('svm'))
    return 'the CPU offers no virtualisation (neither vmx nor svm)'
  try {
    using kvm = new Descriptor(openSync('/dev/kvm', constants.O_RDWR))
    if (Number(libc.ioctl(kvm.fd, kvmGetApiVersion, null)) !== 12)
      return '/dev/kvm does not speak API version 12'
    return undefined
  } catch (error) {
    return `/dev/kvm cannot be opened (${errorCode(error) ?? 'unknown'})`
  }
}
