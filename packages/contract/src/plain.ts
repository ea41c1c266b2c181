/** The part of the contract that needs no schema library: for programs that start often, as the command line does. */
export * from './ids.ts'
export * from './scopes.ts'
export * from './signals.ts'
export * from './variables.ts'
