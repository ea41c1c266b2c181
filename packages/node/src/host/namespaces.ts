import { openSync } from 'node:fs'
import { Descriptor } from './descriptors.ts'
import { check, libc } from './libc.ts'

const cloneNewnet = 0x40000000

/**
 * Runs a synchronous function with this thread inside another network namespace: a socket or tap it opens, a process
 * it starts and a `/proc/sys/net` file it writes belong there. Nothing else of this process can run meanwhile.
 * The process is ended if the way back fails, since everything after would happen in the wrong network.
 */
export function insideNetwork<Result>(namespacePath: string, run: () => Result): Result {
  using target = new Descriptor(openSync(namespacePath, 'r'))
  using home = new Descriptor(openSync('/proc/thread-self/ns/net', 'r'))
  check('setns', libc.setns(target.fd, cloneNewnet))
  try {
    return run()
  } finally {
    if (Number(libc.setns(home.fd, cloneNewnet)) !== 0) process.abort()
  }
}
