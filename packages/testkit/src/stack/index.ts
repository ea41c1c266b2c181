/** A whole SPACE in one process on fake machines. */
export { fakeGuestImage, fakeTemplateDigest, writeFakeTemplate } from './fake-template.ts'
export { type Stack, type StackOptions, startStack } from './start-stack.ts'
