/**
 * How fast this host's time stamp counter runs, against CLOCK_MONOTONIC_RAW. The guest's kernel is told the value, and its
 * clock is wrong for ever by as much as the value is; /proc/cpuinfo shows something else, and CLOCK_MONOTONIC is slewed.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import koffi from 'koffi'
import { SetUpError } from './errors.ts'

const clockMonotonicRaw = 4
const readWriteBits = 3
const readExecuteBits = 5
const privateAnonymous = 0x22
const pageBytes = 4096
/** rdtsc; shl rdx, 32; or rax, rdx; ret */
const readCounterCode = Buffer.from('0f3148c1e2204809d0c3', 'hex')
const samples = 200
const windowMs = 1_500
const readCounterType = koffi.proto('uint64 space_read_counter()')
/** Rates outside are no time stamp counter's. */
const plausibleKhz = { least: 400_000, most: 10_000_000 }

/** Measures for about two seconds; the error is a few parts in a million. */
export async function measureTscKhz(signal?: AbortSignal): Promise<number> {
  if (process.arch !== 'x64') throw unsupported('SPACE needs an x86-64 processor')
  const clock = openClock()
  try {
    const first = clock.sample()
    await sleep(windowMs, undefined, signal === undefined ? {} : { signal })
    const second = clock.sample()
    const khz = Number(((second.ticks - first.ticks) * 1_000_000n) / (second.nanoseconds - first.nanoseconds))
    if (khz < plausibleKhz.least || khz > plausibleKhz.most)
      throw unsupported(`the counter ran at ${khz} kHz`)
    return khz
  } finally {
    clock.close()
  }
}

interface Sample {
  readonly ticks: bigint
  readonly nanoseconds: bigint
}

/** Puts four instructions into a page of their own and calls them; Node.js has no way to read the counter. */
function openClock(): { sample(): Sample; close(): void } {
  const libc = koffi.load('libc.so.6')
  const mmap = libc.func('void *mmap(void *at, size_t bytes, int bits, int flags, int fd, int64 offset)')
  const mprotect = libc.func('int mprotect(void *at, size_t bytes, int bits)')
  const munmap = libc.func('int munmap(void *at, size_t bytes)')
  const clockGettime = libc.func('int clock_gettime(int clock, int64 *time)')
  const page = mmap(null, pageBytes, readWriteBits, privateAnonymous, -1, 0)
  koffi.encode(page, koffi.array('uint8', readCounterCode.length), [...readCounterCode])
  if (mprotect(page, pageBytes, readExecuteBits) !== 0) {
    munmap(page, pageBytes)
    throw unsupported('this host does not let a program run code it made')
  }
  const readCounter = koffi.decode(page, readCounterType)
  const ticksNow = () => BigInt(readCounter())
  const time = new BigInt64Array(2)
  const sampleOnce = () => {
    const before = ticksNow()
    clockGettime(clockMonotonicRaw, time)
    const after = ticksNow()
    const nanoseconds = (time[0] ?? 0n) * 1_000_000_000n + (time[1] ?? 0n)
    return { width: after - before, ticks: (before + after) / 2n, nanoseconds }
  }
  return {
    /** The tightest of many readings: one that an interrupt stretched is never it. */
    sample: () => {
      let best = sampleOnce()
      for (let n = 1; n < samples; n++) {
        const next = sampleOnce()
        if (next.width < best.width) best = next
      }
      return best
    },
    close: () => munmap(page, pageBytes),
  }
}

function unsupported(why: string): SetUpError {
  return new SetUpError(
    'host_unsupported',
    `The clock rate cannot be measured: ${why}.`,
    'Run SPACE on another host.',
  )
}
