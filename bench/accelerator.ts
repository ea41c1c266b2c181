/**
 * What QEMU can use here. A `/dev/kvm` alone says little: a host whose CPU shows no virtualisation may have one that
 * runs only guests made for it.
 */
import { existsSync, readFileSync } from 'node:fs'

export const accelerator: 'kvm' | 'tcg' =
  existsSync('/dev/kvm') && /^flags\s*:.*\b(vmx|svm)\b/m.test(readFileSync('/proc/cpuinfo', 'utf8'))
    ? 'kvm'
    : 'tcg'
