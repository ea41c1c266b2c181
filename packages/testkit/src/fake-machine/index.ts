/** A machine driver without a VMM, that passes the contract test every driver passes. */
export type { FakeDriver } from './driver.ts'
export { FakeMachineError, fakeDriver } from './driver.ts'
export type { HostFaults } from './host.ts'
export { FakeHost } from './host.ts'
export { FakeVm } from './vm.ts'
