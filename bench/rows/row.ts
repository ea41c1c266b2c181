/** What a group of rows is given. */
import type { Samples } from '../samples.ts'
import type { Servers } from '../servers.ts'

export interface Bench {
  /** The servers as they run now; `restart` replaces them. */
  servers: Servers
  restart(signal: 'SIGTERM' | 'SIGKILL'): Promise<Servers>
  /** The smallest n that says anything, to try the bench itself. */
  readonly quick: boolean
  progress(line: string): void
}

/** Rows that are measured together, on one stack. */
export interface RowGroup {
  readonly ids: readonly string[]
  run(bench: Bench): Promise<Samples[]>
}
