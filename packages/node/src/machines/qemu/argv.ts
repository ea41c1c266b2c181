/**
 * QEMU's command line, as data. It says what a machine of a shape is made of, and nothing about a sandbox: memory,
 * disks and kernel are given over QMP once it waits in `-preconfig`, so that a waiting VMM serves any sandbox.
 *
 * Device set 1, the same devices in the same order on every machine, since snapshots depend on it:
 * root drive, modules drive, network card, serial bus with the guest channel, random numbers, balloon.
 */
import { guestMac } from '../../net/addresses.ts'
import type { Shape } from '../machine.ts'

/** Names the devices of a machine and their order; a snapshot is restored only into the same set. */
export const deviceSet = 1

/** Name of the virtio-serial port the agent opens. */
export const guestPortName = 'space.guest.0'

/** Translated guest code QEMU may keep under TCG, in MiB; its own default is 1 GiB a machine. */
export const translationCacheMib = 256

export interface QemuCommandLine {
  readonly shape: Shape
  readonly accelerator: 'kvm' | 'tcg'
  readonly cpuModel: string
  /** Whether it waits for the device state of a snapshot instead of booting. */
  readonly incoming: boolean
  /** Descriptors as QEMU sees them. */
  readonly qmpListener: number
  readonly guestListener: number
  readonly tap: number
}

/** The arguments, without the program. */
export function qemuArguments(line: QemuCommandLine): string[] {
  return [...machineArguments(line), ...channelArguments(line), ...deviceArguments(line)]
}

function machineArguments({ shape, accelerator, cpuModel, incoming }: QemuCommandLine): string[] {
  return [
    ...['-name', 'space,debug-threads=on'],
    ...['-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny'],
    ...['-no-user-config', '-nodefaults', '-display', 'none', '-monitor', 'none'],
    '-preconfig',
    ...(incoming ? ['-incoming', 'defer'] : []),
    ...['-global', 'migration.send-configuration=off'],
    ...['-M', 'microvm,acpi=on,pit=on,pic=on,rtc=on,isa-serial=on,dump-guest-core=off'],
    ...['-accel', accelerator === 'tcg' ? `tcg,thread=multi,tb-size=${translationCacheMib}` : 'kvm'],
    ...['-cpu', cpuModel],
    ...['-smp', `${shape.vcpus},sockets=1,cores=${shape.vcpus},threads=1`],
    ...['-m', `${shape.memoryMib}M`],
    ...['-action', 'reboot=shutdown,shutdown=pause,watchdog=pause'],
  ]
}

/**
 * The control channel waits for its first connection before anything else is made: taken in the running main loop,
 * it would race with the monitor's own thread, and a greeting or bytes of a command could be lost.
 */
function channelArguments({ qmpListener, guestListener }: QemuCommandLine): string[] {
  return [
    ...['-chardev', `socket,id=qmp,fd=${qmpListener},server=on,wait=on`],
    ...['-mon', 'chardev=qmp,mode=control'],
    ...['-chardev', 'ringbuf,id=console,size=65536'],
    ...['-serial', 'chardev:console'],
    ...['-chardev', `socket,id=guest,fd=${guestListener},server=on,wait=off`],
  ]
}

function deviceArguments({ tap }: QemuCommandLine): string[] {
  return [
    ...['-device', 'virtio-blk-device,id=root,drive=root,serial=root'],
    ...['-device', 'virtio-blk-device,id=modules,drive=modules,serial=modules'],
    ...['-netdev', `tap,id=net,fd=${tap},vhost=off`],
    ...['-device', `virtio-net-device,id=net,netdev=net,mac=${guestMac}`],
    ...['-device', 'virtio-serial-device,id=serial,max_ports=2'],
    ...['-device', `virtserialport,id=guest,chardev=guest,name=${guestPortName}`],
    ...['-object', 'rng-random,id=random,filename=/dev/urandom'],
    ...['-device', 'virtio-rng-device,id=rng,rng=random'],
    ...['-device', 'virtio-balloon-device,id=balloon'],
  ]
}

/** What the kernel is told at a cold boot. `tscKhz` is the measured rate of this host's time stamp counter. */
export function kernelArguments(tscKhz: number | undefined, extra: readonly string[] = []): string {
  return [
    'console=ttyS0',
    'quiet',
    'panic=-1',
    'reboot=t',
    'tsc=reliable',
    ...(tscKhz === undefined ? [] : [`tsc_early_khz=${tscKhz}`]),
    'random.trust_cpu=1',
    ...extra,
  ].join(' ')
}
