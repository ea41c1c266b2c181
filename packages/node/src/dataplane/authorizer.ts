/** Asks control whether a bearer may do something; an answer holds for at most a second. */
import type { Client } from '@connectrpc/connect'
import { type ErrorCode, isErrorCode, PublicError } from '@space/contract'
import {
  type AuthorizeRequest_Action,
  type ControlService,
  fromConnectError,
} from '@space/contract/node-link'

/** What is asked for: an action on a sandbox's own resources, or one session. */
export interface Wanted {
  readonly action: AuthorizeRequest_Action
  readonly sandboxId?: string
  readonly sessionId?: string
}

export interface Allowed {
  readonly accountId: string
  readonly sandboxId: string
  readonly processId: string
}

interface Remembered {
  readonly answer: Promise<Allowed>
  readonly untilMs: number
}

const maxValidMs = 1000
const maxRemembered = 10_000

const words: Partial<Record<ErrorCode, string>> = {
  unauthorized: 'The bearer token is not valid here: send a current one as `Authorization: Bearer …`.',
  forbidden: 'The token lacks the scope this needs: use one that has it.',
  not_found: 'There is no such object.',
}

export class Authorizer {
  readonly #controlApi: Client<typeof ControlService>
  readonly #remembered = new Map<string, Remembered>()

  constructor(controlApi: Client<typeof ControlService>) {
    this.#controlApi = controlApi
  }

  /** Resolves with whom and what the token stands for; throws the failure of the catalogue when it is not allowed. */
  allow(token: string, wanted: Wanted): Promise<Allowed> {
    const key = [wanted.action, wanted.sandboxId ?? '', wanted.sessionId ?? '', token].join(' ')
    const known = this.#remembered.get(key)
    if (known !== undefined && performance.now() < known.untilMs) return known.answer
    if (this.#remembered.size >= maxRemembered) this.#remembered.clear()
    const answer = this.ask(token, wanted)
    this.#remembered.set(key, { answer, untilMs: performance.now() + maxValidMs })
    answer.catch(() => this.#remembered.delete(key))
    return answer
  }

  /** The same, asked anew. */
  async ask(token: string, wanted: Wanted): Promise<Allowed> {
    const { action, sandboxId = '', sessionId = '' } = wanted
    const answer = await this.#controlApi
      .authorize({ token, action, sandboxId, sessionId })
      .catch((error: unknown) => {
        throw fromConnectError(error)
      })
    if (answer.allowed) return answer
    const code = isErrorCode(answer.code) ? answer.code : 'unauthorized'
    throw new PublicError(code, words[code] ?? 'This is not allowed.')
  }
}
