import { Code, ConnectError, type ConnectRouter, type ServiceImpl } from '@connectrpc/connect'
import { GuestService, SignalRequest_Scope } from '@space/contract/guest'
import { attach } from './attach.ts'
import type { FakeGuest } from './guest.ts'

const stepAboveMs = 500

/** Serves the agent's whole service for one fake guest. */
export function guestRoutes(router: ConnectRouter, guest: FakeGuest): void {
  router.service(GuestService, guestService(guest))
}

function guestService(guest: FakeGuest): ServiceImpl<typeof GuestService> {
  return {
    info: () => guest.info(),
    attach: (requests, context) => attach(guest, requests, context),
    signal({ processId, signal, scope }) {
      if (signal < 1 || signal > 64) throw new ConnectError('no such signal', Code.InvalidArgument)
      const process = guest.processes.get(processId)
      if (process === undefined) throw new ConnectError('no such process', Code.NotFound)
      const delivered = process.signal(signal)
      if (scope === SignalRequest_Scope.TREE && signal === 9) process.change.announce()
      return { delivered }
    },
    forget({ processIds }) {
      for (const id of processIds) if (guest.processes.get(id)?.exit !== undefined) guest.processes.delete(id)
      return {}
    },
    setClock({ unixNs }) {
      const offsetMs = Number(unixNs) / 1e6 - guest.nowUnixMs()
      guest.clockOffsetMs += offsetMs
      return { offsetNs: BigInt(Math.round(offsetMs * 1e6)), stepped: Math.abs(offsetMs) >= stepAboveMs }
    },
    freeze() {
      if (guest.faults.freeze !== undefined)
        throw new ConnectError(`${guest.faults.freeze} did not freeze in time`, Code.DeadlineExceeded)
      guest.setFrozen(true)
      return {}
    },
    thaw() {
      guest.setFrozen(false)
      return {}
    },
    wake(request) {
      if (request.entropy.length < 32 || request.entropy.length > 512)
        throw new ConnectError('entropy is 32 to 512 bytes', Code.InvalidArgument)
      guest.wakes.push(request)
      guest.clockOffsetMs = Number(request.unixNs) / 1e6 - Date.now()
      guest.environment = request.env
      guest.hostname = request.hostname
      guest.generation = request.generation
      guest.setFrozen(false)
      return { failedHooks: [...(guest.faults.failedHooks ?? [])] }
    },
    sync: () => ({}),
    usage() {
      const processes = [...guest.processes.values()].filter(({ exit }) => exit === undefined).length
      return {
        cpuUsec: 1_000n,
        memoryBytes: 16_777_216n,
        memoryTotalBytes: 1_073_741_824n,
        rootUsedBytes: 500_000_000n,
        rootTotalBytes: 8_589_934_592n,
        processes,
        agentResidentBytes: 5_500_000n,
        oomKills: 0n,
      }
    },
    growRoot: () => ({ rootTotalBytes: 8_589_934_592n }),
    setLinkSecret({ prefix }) {
      if (prefix.length !== 16) throw new ConnectError('a prefix is 16 bytes', Code.InvalidArgument)
      guest.setPrefix(prefix)
      return {}
    },
    shutdown() {
      for (const process of guest.processes.values()) process.signal(9)
      setTimeout(() => guest.powerOff(), 5)
      return {}
    },
    upgrade() {
      throw new ConnectError('a fake agent has no binary', Code.Unimplemented)
    },
  }
}
