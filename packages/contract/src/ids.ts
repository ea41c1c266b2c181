/**
 * Ids are opaque: a readable prefix, then 128 random bits as 25 characters of lower-case letters and digits, no
 * separator, so that a sandbox id is a DNS label. Randomness is passed in: this file decides only the form.
 */
export const idPrefixes = {
  sandbox: 'sbx',
  operation: 'op',
  process: 'prc',
  session: 'ses',
  snapshot: 'snp',
  template: 'tpl',
  token: 'tok',
  account: 'acc',
} as const

export type IdKind = keyof typeof idPrefixes

/** How many random bytes an id is made of. */
export const idEntropyBytes = 16

const tailLength = 25
const forms = Object.fromEntries(
  Object.entries(idPrefixes).map(([kind, prefix]) => [
    kind,
    new RegExp(`^${prefix}[0-9a-z]{${tailLength}}$`),
  ]),
) as Record<IdKind, RegExp>

/** Makes an id of a kind from 16 random bytes; the same bytes always give the same id. */
export function formId(kind: IdKind, entropy: Uint8Array): string {
  if (entropy.length !== idEntropyBytes)
    throw new RangeError(`an id needs ${idEntropyBytes} random bytes, got ${entropy.length}`)
  let number = 0n
  for (const byte of entropy) number = (number << 8n) | BigInt(byte)
  return idPrefixes[kind] + number.toString(36).padStart(tailLength, '0')
}

/** Whether a text has the form of an id of that kind; says nothing about its existence. */
export function isId(kind: IdKind, text: string): boolean {
  return forms[kind].test(text)
}
