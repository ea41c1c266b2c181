/** One host's sandboxes: what a composition of SPACE starts and calls. */
export {
  createNode,
  defaultNodeSettings,
  type NodeOptions,
  type NodeSettings,
  type SpaceNode,
} from './api/create-node.ts'
export { type Check, type DoctorSettings, hostChecks } from './doctor/index.ts'
export {
  loadGuestImage,
  loadHostFacts,
  runSetUp,
  type SetUpEvent,
  type SetUpStep,
  setUpSteps,
  type Template,
  type TemplateStore,
  templateStore,
} from './images/index.ts'
export type { Environment, GuestImage, MachineDriver, Shape } from './machines/machine.ts'
export { type QemuDriverOptions, qemuDriver } from './machines/qemu/index.ts'
