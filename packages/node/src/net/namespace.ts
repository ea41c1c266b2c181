import { existsSync, openSync, writeFileSync } from 'node:fs'
import { Descriptor } from '../host/descriptors.ts'
import { errorCode } from '../host/host-error.ts'
import { check, libc } from '../host/libc.ts'
import { insideNetwork } from '../host/namespaces.ts'
import { runProgram } from '../host/programs.ts'
import { tapName } from './addresses.ts'
import { closedRules, namespaceCommands, namespaceSettings } from './recipe.ts'

const tunsetiff = 0x400454ca
const iffTapNoPiVnetHdr = 0x0002 | 0x1000 | 0x4000

/** Where `ip netns` keeps a namespace of this name. */
export function namespacePath(name: string): string {
  return `/run/netns/${name}`
}

/** Makes a sandbox's network namespace with loopback and tap, closed by rules and without an uplink. */
export async function makeNamespace(name: string, signal?: AbortSignal): Promise<void> {
  const options = signal === undefined ? {} : { signal }
  await runProgram('ip', ['netns', 'add', name], options)
  insideNetwork(namespacePath(name), () => {
    for (const [file, value] of namespaceSettings) writeSetting(file, value)
  })
  // Not `ip -n`: it remounts /, which fails in a chroot whose / is no mount point.
  const inside = { ...options, networkNamespace: namespacePath(name) }
  await runProgram('ip', ['-batch', '-'], { ...inside, input: namespaceCommands() })
  await runProgram('nft', ['-f', '-'], { ...inside, input: closedRules() })
}

function writeSetting(file: string, value: string): void {
  try {
    writeFileSync(file, value)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
}

/** Removes a namespace with everything in it; fine when it is gone. */
export async function removeNamespace(name: string): Promise<void> {
  if (existsSync(namespacePath(name))) await runProgram('ip', ['netns', 'del', name])
}

/** Attaches to the tap of a namespace. The descriptor is what a VMM gets; one holder at a time (else EBUSY). */
export function openTap(name: string): Descriptor {
  return insideNetwork(namespacePath(name), () => {
    const tap = new Descriptor(openSync('/dev/net/tun', 'r+'))
    const request = Buffer.alloc(40)
    request.write(tapName)
    request.writeUInt16LE(iffTapNoPiVnetHdr, 16)
    try {
      check('TUNSETIFF', libc.ioctl(tap.fd, tunsetiff, request))
      return tap
    } catch (error) {
      tap.close()
      throw error
    }
  })
}
