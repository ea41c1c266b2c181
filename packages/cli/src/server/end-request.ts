import { CliFailure } from '../failure.ts'
import type { EndedSandboxes } from './admin-socket.ts'

type State =
  | { readonly kind: 'setting_up' }
  | {
      readonly kind: 'serving'
      readonly endSandboxes: () => Promise<readonly string[]>
      readonly ended: () => void
    }

/** What `space down` does to the process it reaches: before it serves it gives up, then it ends all sandboxes. */
export class EndRequest {
  readonly #abort = new AbortController()
  #state: State = { kind: 'setting_up' }

  /** Aborts when the end is asked for while there is nothing to end yet. */
  get beforeServing(): AbortSignal {
    return this.#abort.signal
  }

  /** From now on the end begins with the sandboxes; resolves once they are gone. */
  serve(endSandboxes: () => Promise<readonly string[]>): Promise<void> {
    return new Promise((resolve) => {
      this.#state = { kind: 'serving', endSandboxes, ended: resolve }
    })
  }

  /** Asks for the end. */
  async ask(): Promise<EndedSandboxes> {
    const state = this.#state
    if (state.kind === 'setting_up') {
      this.#abort.abort(new CliFailure('ended by `space down`', { code: 'ended' }))
      return { sandboxes: [], complete: false }
    }
    const sandboxes = await state.endSandboxes()
    state.ended()
    return { sandboxes, complete: true }
  }
}
