/**
 * The system calls Node.js lacks, through koffi. Everything here is synchronous and short; what can take long is
 * done with `async` on a thread of the pool. x86-64 Linux, glibc.
 */
import koffi from 'koffi'
import { errnoName, HostError } from './host-error.ts'

const lib = koffi.load('libc.so.6')

koffi.struct('iovec', { iov_base: 'void *', iov_len: 'size_t' })
koffi.struct('msghdr', {
  msg_name: 'void *',
  msg_namelen: 'uint32_t',
  msg_iov: 'iovec *',
  msg_iovlen: 'size_t',
  msg_control: 'void *',
  msg_controllen: 'size_t',
  msg_flags: 'int',
})
koffi.struct('pollfd', { fd: 'int', events: 'int16_t', revents: 'int16_t' })

/** Raw entry points. They answer -1 on failure: call them through `check`. */
export const libc = {
  setns: lib.func('int setns(int fd, int nstype)'),
  socket: lib.func('int socket(int domain, int type, int protocol)'),
  bind: lib.func('int bind(int fd, const void *address, uint32_t length)'),
  connect: lib.func('int connect(int fd, const void *address, uint32_t length)'),
  listen: lib.func('int listen(int fd, int backlog)'),
  sendmsg: lib.func('int64_t sendmsg(int fd, const msghdr *message, int flags)'),
  ioctl: lib.func('int ioctl(int fd, uint64_t request, void *argument)'),
  fcntl: lib.func('int fcntl(int fd, int command, long argument)'),
  lseek: lib.func('int64_t lseek(int fd, int64_t offset, int whence)'),
  sendfile: lib.func('int64_t sendfile(int out, int in, _Inout_ int64_t *offset, size_t count)'),
  memfdCreate: lib.func('int memfd_create(const char *name, uint32_t flags)'),
  poll: lib.func('int poll(_Inout_ pollfd *fds, uint64_t count, int timeoutMs)'),
  syscall: lib.func('int64_t syscall(int64_t number, int64_t a, int64_t b, int64_t c, int64_t d)'),
} as const

/** Turns the -1 of a system call into a HostError that names the call and the errno. */
export function check(operation: string, result: unknown): number {
  const value = Number(result)
  if (value < 0) throw new HostError(operation, errnoName(koffi.errno()))
  return value
}
