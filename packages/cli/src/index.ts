export { buildProgram, main } from './program.ts'
