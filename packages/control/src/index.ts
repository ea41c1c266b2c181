export { type Clock, systemClock } from './clock.ts'
export { type Control, type ControlOptions, createControl } from './control.ts'
export type { NodeApi } from './node-link/node.ts'
