export { namespacePath, openTap } from './namespace.ts'
export { SlotPool } from './slot-pool.ts'
export { SlotRegistry } from './slot-registry.ts'
