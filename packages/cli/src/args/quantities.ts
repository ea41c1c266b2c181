import { InvalidArgumentError } from 'commander'

const unitSeconds: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600, d: 86_400 }

/** A span of time in seconds: `90`, `90s`, `5m`, `2h`, `1d`. */
export function parseSeconds(text: string): number {
  const [, digits, unit] = /^(\d{1,9}(?:\.\d{1,3})?)([smhd]?)$/.exec(text) ?? []
  const factor = unit === undefined ? undefined : unitSeconds[unit]
  if (digits === undefined || factor === undefined || Number(digits) <= 0)
    throw new InvalidArgumentError('Write a time above 0 such as 90, 90s, 5m or 2h.')
  return Number(digits) * factor
}

/** A whole number from 1 on. */
export function parseCount(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('Write a whole number from 1 on.')
  return Number(text)
}

/** A point in time: an RFC 3339 time, or a span from now such as `30d`. Answers RFC 3339 UTC. */
export function parseExpiry(text: string): string {
  const time = /^\d{4}-/.test(text) ? Date.parse(text) : Date.now() + parseSeconds(text) * 1000
  if (!(time > Date.now()))
    throw new InvalidArgumentError('Write a time in the future, such as 2030-01-31T00:00:00Z or 30d.')
  return new Date(time).toISOString()
}
