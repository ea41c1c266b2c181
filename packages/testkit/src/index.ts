/** Everything a test needs to run SPACE without a VMM: the real neighbours, made small. */
export * from './fake-guest/index.ts'
export * from './fake-machine/index.ts'
export * from './guest-commands.ts'
