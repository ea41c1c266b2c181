import { createHash, randomBytes } from 'node:crypto'
import { formId, type IdKind, idEntropyBytes } from '@space/contract'

/** Gives the ids one request needs, in the order it asks for them. */
export type IdSource = (kind: IdKind) => string

/** Ids nobody can guess or repeat. */
export function randomIds(): IdSource {
  return (kind) => formId(kind, randomBytes(idEntropyBytes))
}

/** Ids that follow from a seed: the same request done again under the same seed makes the same objects. */
export function seededIds(seed: string): IdSource {
  let count = 0
  return (kind) => {
    const hash = createHash('sha256').update(`${seed}:${kind}:${count++}`).digest()
    return formId(kind, hash.subarray(0, idEntropyBytes))
  }
}

/** A seed for one request. */
export function newSeed(): string {
  return randomBytes(32).toString('hex')
}
