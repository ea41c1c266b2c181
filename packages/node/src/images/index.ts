export { SetUpError, type SetUpErrorCode } from './errors.ts'
export { loadGuestImage } from './guest-image.ts'
export { type HostFacts, loadHostFacts, measureHost } from './host-facts.ts'
export type { SpaceHome } from './paths.ts'
export type { TemplateDefaults } from './recipe.ts'
export { type SetUpOptions, setUpSteps } from './set-up.ts'
export {
  runSetUp,
  type SetUpEstimate,
  type SetUpEvent,
  type SetUpProgress,
  type SetUpStep,
} from './set-up-step.ts'
export { type Template, type TemplateProgress, type TemplateStore, templateStore } from './template-store.ts'
