/**
 * What a JSON schema cannot say: sizes in bytes, NUL characters, sums. Each check throws an `invalid_request` whose
 * message names the field, the limit and the remedy. The API and the data plane run the same ones.
 */
import { PublicError } from './errors.ts'
import { limits } from './limits.ts'

/** What `checkCommand` looks at. */
export interface CommandToCheck {
  readonly argv: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly user?: string
  readonly metadata?: Readonly<Record<string, string>>
}

/** Throws when Linux could not take this command or a limit is exceeded. */
export function checkCommand(command: CommandToCheck): void {
  const { argv } = command
  if (argv.length < 1) refuse('argv', 'argv_entries', 'argv is empty: name at least the program to run.')
  if (argv.length > limits.argv_entries)
    refuse(
      'argv',
      'argv_entries',
      `argv has ${argv.length} entries, at most ${limits.argv_entries} are taken: pass long lists through a file or stdin.`,
    )
  if (argv[0] === '') refuse('argv.0', 'argv_entries', 'argv.0 is empty: name the program to run.')
  let together = 0
  argv.forEach((text, index) => {
    together += checkString(text, `argv.${index}`)
  })
  if (together > limits.argv_bytes)
    refuse(
      'argv',
      'argv_bytes',
      `argv holds ${together} bytes, at most ${limits.argv_bytes} are taken: pass large data through a file or stdin.`,
    )
  if (command.env) checkEnv(command.env)
  if (command.cwd !== undefined) checkCwd(command.cwd)
  if (command.user !== undefined) checkUser(command.user)
  if (command.metadata) checkMetadata(command.metadata)
}

/** Throws when an environment has too many entries, a name Linux cannot hold, or a too long string. */
export function checkEnv(env: Readonly<Record<string, string>>): void {
  const entries = Object.entries(env)
  if (entries.length > limits.env_entries)
    refuse(
      'env',
      'env_entries',
      `env has ${entries.length} entries, at most ${limits.env_entries} are taken: put the rest into a file.`,
    )
  for (const [name, value] of entries) {
    const field = `env.${shown(name)}`
    if (name === '' || name.includes('='))
      refuse(field, 'env_entries', `${field} is no variable name: it must not be empty or contain "=".`)
    checkString(`${name}=${value}`, field)
  }
}

/** Throws when metadata has too many pairs, or a key or value is too long. */
export function checkMetadata(metadata: Readonly<Record<string, string>>): void {
  const entries = Object.entries(metadata)
  if (entries.length > limits.metadata_pairs)
    refuse(
      'metadata',
      'metadata_pairs',
      `metadata has ${entries.length} pairs, at most ${limits.metadata_pairs} are taken: keep the rest in your application.`,
    )
  for (const [key, value] of entries) {
    const field = `metadata.${shown(key)}`
    if (key === '') refuse(field, 'metadata_key_bytes', 'metadata has an empty key: give it a name.')
    const keyBytes = utf8Bytes(key, field)
    if (keyBytes > limits.metadata_key_bytes)
      refuse(
        field,
        'metadata_key_bytes',
        `${field}: the key has ${keyBytes} bytes, at most ${limits.metadata_key_bytes} are taken: shorten it.`,
      )
    const valueBytes = utf8Bytes(value, field)
    if (valueBytes > limits.metadata_value_bytes)
      refuse(
        field,
        'metadata_value_bytes',
        `${field}: the value has ${valueBytes} bytes, at most ${limits.metadata_value_bytes} are taken: shorten it.`,
      )
  }
}

function checkCwd(cwd: string): void {
  if (!cwd.startsWith('/')) refuse('cwd', 'path_bytes', 'cwd is not an absolute path: begin it with "/".')
  const bytes = checkString(cwd, 'cwd')
  if (bytes > limits.path_bytes)
    refuse(
      'cwd',
      'path_bytes',
      `cwd has ${bytes} bytes, at most ${limits.path_bytes} are taken: use a shorter path.`,
    )
}

function checkUser(user: string): void {
  const bytes = checkString(user, 'user')
  if (bytes < 1 || bytes > limits.user_name_bytes)
    refuse('user', 'user_name_bytes', `user has ${bytes} bytes, 1 to ${limits.user_name_bytes} are taken.`)
}

/** The bytes of one string of an argument list or environment. */
function checkString(text: string, field: string): number {
  if (text.includes('\0'))
    refuse(
      field,
      'command_string_bytes',
      `${field} contains a NUL character, which Linux cannot pass: remove it.`,
    )
  const bytes = utf8Bytes(text, field)
  if (bytes > limits.command_string_bytes)
    refuse(
      field,
      'command_string_bytes',
      `${field} has ${bytes} bytes, Linux takes at most ${limits.command_string_bytes} in one string: pass it through a file or stdin.`,
    )
  return bytes
}

function utf8Bytes(text: string, field: string): number {
  if (!text.isWellFormed())
    refuse(
      field,
      'command_string_bytes',
      `${field} is not valid Unicode (a lone surrogate): correct its encoding.`,
    )
  let bytes = text.length
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit >= 0x800 && (unit < 0xd800 || unit > 0xdfff)) bytes += 2
    else if (unit >= 0x80) bytes += 1
  }
  return bytes
}

/** A key as it may appear in a message: short and without control characters. */
function shown(key: string): string {
  const printable = key.replaceAll(/[^\x20-\x7e]/g, '?')
  return printable.length > 40 ? `${printable.slice(0, 40)}…` : printable
}

function refuse(field: string, limit: keyof typeof limits, message: string): never {
  throw new PublicError('invalid_request', message, {
    details: { field, limit: limits[limit], limit_name: limit },
  })
}
