/**
 * Unix sockets that lie in a root-owned folder. They are made and dialled through a descriptor of that folder, so that
 * a long folder name does not meet the kernel's limit of 107 bytes a socket path, and no component is looked up twice.
 */
import { chmodSync, constants, openSync } from 'node:fs'
import { Socket } from 'node:net'
import { Descriptor } from './descriptors.ts'
import { HostError } from './host-error.ts'
import { check, libc } from './libc.ts'

const afUnix = 1
const sockStreamCloexecNonblock = 1 | 0o2000000 | 0o4000
const sockStreamCloexec = 1 | 0o2000000

function address(path: string): Buffer {
  const bytes = Buffer.from(path)
  if (bytes.length > 107) throw new HostError('unix socket', 'ENAMETOOLONG', path)
  const result = Buffer.alloc(2 + 108)
  result.writeUInt16LE(afUnix, 0)
  bytes.copy(result, 2)
  return result
}

function openFolder(folder: string): Descriptor {
  return new Descriptor(openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW))
}

/**
 * Makes a listening socket `name` (mode 0600) in a folder, to be handed to a VMM, which accepts on it without any
 * access to the folder. The caller owns the descriptor; the name goes with the folder.
 */
export function listenIn(folder: string, name: string, backlog = 1): Descriptor {
  using base = openFolder(folder)
  const path = `/proc/self/fd/${base.fd}/${name}`
  const socket = new Descriptor(check('socket', libc.socket(afUnix, sockStreamCloexec, 0)))
  try {
    const target = address(path)
    check(`bind ${name}`, libc.bind(socket.fd, target, target.length))
    chmodSync(path, 0o600)
    check(`listen ${name}`, libc.listen(socket.fd, backlog))
    return socket
  } catch (error) {
    socket.close()
    throw error
  }
}

export interface Dialled {
  readonly socket: Socket
  /** The descriptor below the socket, for `sendDescriptors`; valid while the socket is open. */
  readonly fd: number
}

/** Dials the socket `name` of a folder. ECONNREFUSED: nobody listens; EAGAIN: too many wait already. */
export function dialIn(folder: string, name: string): Dialled {
  using base = openFolder(folder)
  const socket = new Descriptor(check('socket', libc.socket(afUnix, sockStreamCloexecNonblock, 0)))
  try {
    const target = address(`/proc/self/fd/${base.fd}/${name}`)
    check(`connect ${name}`, libc.connect(socket.fd, target, target.length))
    return { socket: new Socket({ fd: socket.fd, readable: true, writable: true }), fd: socket.fd }
  } catch (error) {
    socket.close()
    throw error
  }
}

/**
 * Sends bytes with open descriptors attached (SCM_RIGHTS), in one message. The caller sees to it that nothing else is
 * being written to the socket, and keeps or closes its own copies.
 */
export function sendDescriptors(socketFd: number, bytes: Buffer, fds: readonly number[]): void {
  const control = Buffer.alloc(16 + Math.ceil((fds.length * 4) / 8) * 8)
  control.writeBigUInt64LE(BigInt(16 + fds.length * 4), 0)
  control.writeInt32LE(1, 8) // SOL_SOCKET
  control.writeInt32LE(1, 12) // SCM_RIGHTS
  for (const [index, fd] of fds.entries()) control.writeInt32LE(fd, 16 + index * 4)
  const message = {
    msg_name: null,
    msg_namelen: 0,
    msg_iov: { iov_base: bytes, iov_len: bytes.length },
    msg_iovlen: 1,
    msg_control: control,
    msg_controllen: control.length,
    msg_flags: 0,
  }
  const sent = check('sendmsg', libc.sendmsg(socketFd, message, 0x4000)) // MSG_NOSIGNAL
  if (sent !== bytes.length) throw new HostError('sendmsg', 'EMSGSIZE', `${sent} of ${bytes.length} bytes`)
}
