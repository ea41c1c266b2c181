/** What a measurement leaves: its samples, and the numbers said about them. */
export interface Samples {
  readonly id: string
  readonly title: string
  readonly unit: Unit
  readonly values: readonly number[]
}

export type Unit = 'ms' | 's' | 'MB/s' | '/s' | 'MiB' | '% of a core'

export interface Summary {
  readonly n: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/** Percentiles by nearest rank. For a rate, where more is better, p95 and p99 are taken from the slow end. */
export function summarise(samples: Samples): Summary {
  const rate = isRate(samples.unit)
  const sorted = [...samples.values].sort((a, b) => (rate ? b - a : a - b))
  const rank = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN
  return { n: sorted.length, p50: rank(0.5), p95: rank(0.95), p99: rank(0.99) }
}

/** Whether more of the unit is better. */
export function isRate(unit: Unit): boolean {
  return unit === 'MB/s' || unit === '/s'
}
