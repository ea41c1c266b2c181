/**
 * Text of others on a terminal: names, argv and messages may hold control characters, which could move the cursor or
 * rewrite what stands above. They are shown as escapes.
 */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`
  })
}

/** An argv as a line that a POSIX shell would take apart the same way. */
export function shellLine(argv: readonly string[]): string {
  return argv.map(shellWord).join(' ')
}

function shellWord(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word
  return `'${visible(word).replaceAll("'", "'\\''")}'`
}

/** Cuts a text to at most `width` characters, showing that something is missing. */
export function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`
}
