/** The agent's side of the guest channel, made small: true protocol, true stream, scripted programs. */
export { startFakeGuest } from './boot.ts'
export type { FakeGuest, GuestFaults, SavedGuest } from './guest.ts'
export { maxUnacknowledgedBytes } from './output.ts'
export type { FakeExit, FakeProcess, FakeProcessSpec } from './process.ts'
export { patternBytes } from './programs.ts'
