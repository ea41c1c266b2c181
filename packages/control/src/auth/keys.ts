import { createHmac, randomBytes } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

const keyBytes = 32

/**
 * The key every bearer value is derived from: `secretOf(purpose, id)` is an HMAC, so that an answer that held a token
 * can be given again without the token ever being stored. The key itself cannot be printed.
 */
export class BearerKey {
  readonly #key: Buffer

  constructor(key: Buffer) {
    if (key.length !== keyBytes)
      throw new RangeError(`the key has ${key.length} bytes instead of ${keyBytes}`)
    this.#key = key
  }

  /** 43 base64url characters that only the holder of the key can make for this purpose and id. */
  secretOf(purpose: 'api' | 'session', id: string): string {
    return createHmac('sha256', this.#key).update(`${purpose} token ${id}`).digest('base64url')
  }

  toJSON(): string {
    return '[key]'
  }
}

/** Reads the key, or makes one that is whole on disk before it is used; mode 0600. */
export function loadBearerKey(path: string): BearerKey {
  if (!existsSync(path)) writeWhole(path, randomBytes(keyBytes))
  return new BearerKey(readFileSync(path))
}

function writeWhole(path: string, content: Buffer): void {
  const temporary = `${path}.new`
  const file = openSync(temporary, 'w', 0o600)
  try {
    writeSync(file, content)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(temporary, path)
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
