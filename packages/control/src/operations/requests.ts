/**
 * Requests with an idempotency key: the same key with the same request gives the first answer again, with another
 * request it is a conflict. What only the store knows is done and remembered in one transaction; what a node must do
 * is remembered first, so that after a crash it is done again under the same ids.
 */
import { createHash } from 'node:crypto'
import { limits, PublicError, toPublicError } from '@space/contract'
import { decideIdempotency } from '@space/core'
import type { Kysely } from 'kysely'
import type { Clock } from '../clock.ts'
import { answerRequest, findRequest, forgetRequest, putRequest } from '../store/requests.ts'
import type { Database } from '../store/schema.ts'
import type { Store } from '../store/store.ts'
import { type IdSource, newSeed, randomIds, seededIds } from './ids.ts'

/** What a mutation answers. Bearer values are not part of it: they are put in when it is sent. */
export interface Answer {
  readonly status: number
  readonly location?: string
  readonly body: unknown
  /** The operation that can be waited for. */
  readonly operationId?: string
}

export interface KeyedRequest {
  readonly accountId: string
  readonly key: string | undefined
  readonly fingerprint: string
}

export interface Outcome {
  readonly answer: Answer
  readonly replayed: boolean
}

type Begun = { readonly seed: string } | { readonly answer: Answer }

export class Requests {
  readonly #store: Store
  readonly #clock: Clock
  readonly #underWay = new Map<string, Promise<void>>()

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /** Runs a change that needs nothing but the store; change, answer and key are committed together. */
  async atomic(
    request: KeyedRequest,
    run: (db: Kysely<Database>, ids: IdSource) => Promise<Answer>,
  ): Promise<Outcome> {
    const { key } = request
    if (key === undefined)
      return { answer: await this.#store.write((db) => run(db, randomIds())), replayed: false }
    return await this.#store.write(async (db) => {
      const begun = await this.#begin(db, { ...request, key })
      if ('answer' in begun) return { answer: begun.answer, replayed: true }
      const answer = await run(db, seededIds(begun.seed))
      await answerRequest(db, request.accountId, key, JSON.stringify(answer))
      return { answer, replayed: false }
    })
  }

  /** Runs a change that a node takes part in; `run` may be repeated under the same ids and must bear it. */
  async staged(request: KeyedRequest, run: (ids: IdSource) => Promise<Answer>): Promise<Outcome> {
    const { accountId, key } = request
    if (key === undefined) return { answer: await run(randomIds()), replayed: false }
    const name = `${accountId} ${key}`
    for (let other = this.#underWay.get(name); other; other = this.#underWay.get(name)) await other
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#underWay.set(name, promise)
    try {
      return await this.#runStaged({ ...request, key }, run)
    } finally {
      this.#underWay.delete(name)
      resolve()
    }
  }

  async #runStaged(
    request: KeyedRequest & { readonly key: string },
    run: (ids: IdSource) => Promise<Answer>,
  ): Promise<Outcome> {
    const { accountId, key } = request
    const begun = await this.#store.write((db) => this.#begin(db, request))
    if ('answer' in begun) return { answer: begun.answer, replayed: true }
    try {
      const answer = await run(seededIds(begun.seed))
      await this.#store.write((db) => answerRequest(db, accountId, key, JSON.stringify(answer)))
      return { answer, replayed: false }
    } catch (thrown) {
      // What may have happened stays remembered, so that trying again joins it; what was refused is forgotten.
      const { code } = toPublicError(thrown)
      if (code !== 'service_unavailable' && code !== 'internal')
        await this.#store.write((db) => forgetRequest(db, accountId, key))
      throw thrown
    }
  }

  async #begin(db: Kysely<Database>, request: KeyedRequest & { readonly key: string }): Promise<Begun> {
    const nowMs = this.#clock.nowMs()
    const row = await findRequest(db, request.accountId, request.key)
    const remembered = row && {
      fingerprint: row.fingerprint,
      createdAtMs: row.created_at,
      answered: row.answer !== null,
    }
    const keptMs = limits.idempotency_seconds * 1000
    switch (decideIdempotency(remembered, request.fingerprint, nowMs, keptMs)) {
      case 'conflict':
        throw new PublicError(
          'idempotency_conflict',
          'This Idempotency-Key was used for another request in the last 24 hours: choose a new key.',
          { details: { field: 'Idempotency-Key' } },
        )
      case 'replay':
        return { answer: JSON.parse(row?.answer ?? 'null') as Answer }
      case 'resume':
        return { seed: row?.seed ?? newSeed() }
      case 'fresh': {
        const seed = newSeed()
        await putRequest(db, {
          account_id: request.accountId,
          key: request.key,
          fingerprint: request.fingerprint,
          seed,
          answer: null,
          created_at: nowMs,
        })
        return { seed }
      }
    }
  }
}

/** What makes two requests the same: method, path with query, and body, whatever the order of its fields. */
export function fingerprintOf(method: string, url: string, body: unknown): string {
  return createHash('sha256')
    .update(`${method} ${url}\n${canonicalJson(body)}`)
    .digest('hex')
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value ?? null, (_key, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )
}
