/** The processes of this node that have a run: opened once each, however many ask at the same time. */
import type { ProcessRun } from './run.ts'

export class LiveRuns {
  readonly #runs = new Map<
    string,
    { readonly sandboxId: string; readonly run: Promise<ProcessRun>; value?: ProcessRun }
  >()

  /** The run that is open or being opened. */
  get(processId: string): Promise<ProcessRun> | undefined {
    return this.#runs.get(processId)?.run
  }

  /** The run when it is open. */
  opened(processId: string): ProcessRun | undefined {
    return this.#runs.get(processId)?.value
  }

  /** Opens a run; who asks meanwhile gets the same one. A failure to open leaves nothing. */
  open(processId: string, sandboxId: string, make: () => Promise<ProcessRun>): Promise<ProcessRun> {
    const known = this.#runs.get(processId)
    if (known !== undefined) return known.run
    const entry: { sandboxId: string; run: Promise<ProcessRun>; value?: ProcessRun } = {
      sandboxId,
      run: make(),
    }
    this.#runs.set(processId, entry)
    entry.run = entry.run.then(
      (run) => {
        entry.value = run
        return run
      },
      (error: unknown) => {
        this.#runs.delete(processId)
        throw error
      },
    )
    return entry.run
  }

  remove(processId: string): void {
    this.#runs.delete(processId)
  }

  /** Those of one sandbox. */
  ofSandbox(sandboxId: string): Promise<ProcessRun>[] {
    return [...this.#runs.values()].filter((entry) => entry.sandboxId === sandboxId).map((entry) => entry.run)
  }

  all(): Promise<ProcessRun>[] {
    return [...this.#runs.values()].map((entry) => entry.run)
  }
}
