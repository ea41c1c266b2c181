import { describe, expect, it } from 'vitest'
import { kernelArguments, type QemuCommandLine, qemuArguments } from '../src/machines/qemu/argv.ts'
import {
  belowNode,
  freezesOf,
  layerNode,
  readOnlyNode,
  writableLayer,
} from '../src/machines/qemu/block-nodes.ts'
import { cpuModelFor } from '../src/machines/qemu/cpu-model.ts'

const line: QemuCommandLine = {
  shape: { vcpus: 2, memoryMib: 1024 },
  accelerator: 'tcg',
  cpuModel: 'max,-svm',
  incoming: true,
  qmpListener: 3,
  guestListener: 4,
  tap: 5,
}

/** The values of an option, in order. */
function values(args: readonly string[], option: string): string[] {
  return args.flatMap((arg, index) => (arg === option ? [args[index + 1] ?? ''] : []))
}

describe("QEMU's command line", () => {
  it('has device set 1, in its order', () => {
    const devices = values(qemuArguments(line), '-device').map((device) => device.split(',')[0])
    expect(devices).toEqual([
      'virtio-blk-device',
      'virtio-blk-device',
      'virtio-net-device',
      'virtio-serial-device',
      'virtserialport',
      'virtio-rng-device',
      'virtio-balloon-device',
    ])
  })

  it('is the same for every machine but for its shape and whether it waits for a state', () => {
    const other = qemuArguments({ ...line, shape: { vcpus: 1, memoryMib: 256 }, incoming: false })
    const differing = qemuArguments(line).filter((arg) => !other.includes(arg))
    expect(differing).toEqual(['-incoming', 'defer', '2,sockets=1,cores=2,threads=1', '1024M'])
  })

  it('closes every door: sandbox, no user configuration, no monitor, no default device, no user network', () => {
    const args = qemuArguments(line)
    expect(values(args, '-sandbox')).toEqual([
      'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny',
    ])
    expect(args).toContain('-no-user-config')
    expect(args).toContain('-nodefaults')
    expect(values(args, '-monitor')).toEqual(['none'])
    expect(values(args, '-netdev')).toEqual(['tap,id=net,fd=5,vhost=off'])
    expect(args.join(' ')).not.toMatch(/user,|vnc|spice|fsdev|virtfs|exec:/)
  })

  it('opens nothing by a path of ours: sockets and tap are descriptors', () => {
    const args = qemuArguments(line)
    expect(values(args, '-chardev')).toEqual([
      'socket,id=qmp,fd=3,server=on,wait=on',
      'ringbuf,id=console,size=65536',
      'socket,id=guest,fd=4,server=on,wait=off',
    ])
    expect(args.filter((arg) => arg.includes('/'))).toEqual(['rng-random,id=random,filename=/dev/urandom'])
  })

  it('tells a guest kernel the measured rate of the time stamp counter, or nothing about it', () => {
    expect(kernelArguments(2_445_405).split(' ')).toContain('tsc_early_khz=2445405')
    expect(kernelArguments(undefined)).not.toContain('tsc_early_khz')
  })
})

describe('the CPU a guest sees', () => {
  const cpuinfo = (vendor: string, flags: string): string => `vendor_id\t: ${vendor}\nflags\t\t: ${flags}\n`

  it('never has virtualisation of its own', () => {
    expect(cpuModelFor('tcg', '')).toBe('max,-svm')
    for (const vendor of ['GenuineIntel', 'AuthenticAMD'])
      for (const flags of ['fpu', 'fpu avx2', 'fpu avx2 avx512f avx512vl'])
        expect(cpuModelFor('kvm', cpuinfo(vendor, flags))).toMatch(/,-(svm|vmx)$/)
  })

  it('is a named model under KVM, not that of the host', () => {
    expect(cpuModelFor('kvm', cpuinfo('GenuineIntel', 'fpu avx2'))).toBe('Haswell-noTSX,-vmx')
    expect(cpuModelFor('kvm', cpuinfo('AuthenticAMD', 'fpu avx2'))).toBe('EPYC,-svm')
  })
})

describe('block nodes', () => {
  it('chain each read-only file to the one below and never to a name in its header', () => {
    expect(readOnlyNode(0, '/proc/self/fd/9')).toMatchObject({ driver: 'raw', 'node-name': 'below-0' })
    expect(readOnlyNode(2, '/proc/self/fd/11')).toMatchObject({
      driver: 'qcow2',
      'read-only': true,
      backing: 'below-1',
    })
    expect(writableLayer('root', '/x', belowNode(2))).toMatchObject({
      'node-name': 'root',
      backing: 'below-2',
    })
  })

  it('count how often the active layer was frozen in its name', () => {
    for (const count of [0, 1, 9, 300]) expect(freezesOf(layerNode(count))).toBe(count)
  })
})
