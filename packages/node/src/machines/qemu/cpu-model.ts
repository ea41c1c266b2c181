/**
 * The CPU a guest sees. Under TCG everything QEMU can emulate, but not AMD-V: a guest with it has a KVM of its own,
 * which no sandbox may get. Under KVM a named model, never `host`, so that a snapshot can move to another host that
 * has at least the same; also without virtualisation.
 */
export function cpuModelFor(accelerator: 'kvm' | 'tcg', cpuinfo: string): string {
  if (accelerator === 'tcg') return 'max,-svm'
  const flags = new Set(/^flags\s*:(.*)$/m.exec(cpuinfo)?.[1]?.trim().split(/\s+/) ?? [])
  if (cpuinfo.includes('AuthenticAMD')) return flags.has('avx2') ? 'EPYC,-svm' : 'Opteron_G3,-svm'
  if (flags.has('avx512f') && flags.has('avx512vl')) return 'Skylake-Server-noTSX-IBRS,-vmx'
  if (flags.has('avx2')) return 'Haswell-noTSX,-vmx'
  return 'Westmere,-vmx'
}
