import { InvalidArgumentError } from 'commander'

type Pairs = Readonly<Record<string, string>>

/**
 * Collects repeated `NAME=VALUE` options. A NAME alone takes its value from `own`, this process's environment; one
 * that is not set there is refused rather than passed on empty.
 */
export function collectEnv(own: Readonly<Record<string, string | undefined>>) {
  return (text: string, previous: Pairs = {}): Pairs => {
    const at = text.indexOf('=')
    if (at === 0 || text === '')
      throw new InvalidArgumentError('Write NAME=VALUE, or NAME to pass on a variable.')
    if (at > 0) return { ...previous, [text.slice(0, at)]: text.slice(at + 1) }
    const value = own[text]
    if (value === undefined) throw new InvalidArgumentError(`${text} is not set here: write ${text}=VALUE.`)
    return { ...previous, [text]: value }
  }
}

/** Collects repeated `KEY=VALUE` options. */
export function collectPairs(text: string, previous: Pairs = {}): Pairs {
  const at = text.indexOf('=')
  if (at <= 0) throw new InvalidArgumentError('Write KEY=VALUE.')
  return { ...previous, [text.slice(0, at)]: text.slice(at + 1) }
}
