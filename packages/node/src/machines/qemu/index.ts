export { type QemuDriverOptions, qemuDriver } from './driver.ts'
