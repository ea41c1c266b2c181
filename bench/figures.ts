/**
 * Every row of the bench with its figure. A row with a floor counts as a ratio to that floor measured in the same run,
 * because hosts are shared and noisy; the others count in their own unit. `at` says which percentile must hold.
 */
import { cpus } from 'node:os'
import type { Summary } from './samples.ts'

export interface Figure {
  readonly id: string
  readonly floor?: { readonly of: string; readonly title: string; readonly scale?: () => number }
  readonly at: 'p50' | 'p99'
  /** Whether the limit holds for the ratio to the floor or for the measured value itself. */
  readonly of: 'ratio' | 'value'
  readonly limit: { readonly atMost: number } | { readonly atLeast: number }
}

export const burstSize = 20

export const figures: readonly Figure[] = [
  { id: 'setup-warm', of: 'value', at: 'p50', limit: { atMost: 15 } },
  { id: 'create', floor: { of: 'claim', title: 'claim' }, of: 'ratio', at: 'p50', limit: { atMost: 1.4 } },
  { id: 'exec-api', floor: { of: 'exec', title: 'exec' }, of: 'ratio', at: 'p50', limit: { atMost: 2 } },
  { id: 'attach', floor: { of: 'exec', title: 'exec' }, of: 'ratio', at: 'p50', limit: { atMost: 2 } },
  { id: 'stdout', floor: { of: 'stream', title: 'stream' }, of: 'ratio', at: 'p50', limit: { atLeast: 0.6 } },
  { id: 'get', of: 'value', at: 'p50', limit: { atMost: 2 } },
  { id: 'list', of: 'value', at: 'p50', limit: { atMost: 10 } },
  {
    id: 'creates',
    floor: { of: 'commit', title: 'commit' },
    of: 'value',
    at: 'p50',
    limit: { atLeast: 500 },
  },
  { id: 'get-meanwhile', of: 'value', at: 'p99', limit: { atMost: 10 } },
  {
    id: 'burst',
    floor: {
      of: 'claim',
      title: `${burstSize} claims ÷ cores`,
      scale: () => burstSize / cpus().length / 1000,
    },
    of: 'ratio',
    at: 'p50',
    limit: { atMost: 1.3 },
  },
  { id: 'idle-memory', of: 'value', at: 'p50', limit: { atMost: 44 } },
  { id: 'idle-cpu', of: 'value', at: 'p50', limit: { atMost: 0.2 } },
  { id: 'node-memory', of: 'value', at: 'p50', limit: { atMost: 1 } },
  { id: 'restart-serving', of: 'value', at: 'p99', limit: { atMost: 3 } },
  { id: 'restart-adopted', of: 'value', at: 'p99', limit: { atMost: 10 } },
  { id: 'agent-resident', of: 'value', at: 'p50', limit: { atMost: 10 } },
]

/**
 * What the floors were on a quiet 2-core host without KVM when the figures were set. A floor far above its trial says
 * that the host is busy, or that the guest or its agent has become slow, which no ratio to it would show.
 */
export const trials: Readonly<Record<string, number>> = {
  'vmm-start': 160,
  claim: 280,
  exec: 10,
  answer: 1.4,
  stream: 35,
  commit: 2_600,
}

/** How a row stands: its ratio where it has a floor, and whether it holds its figure. */
export interface Standing {
  /** For a floor: what it was in the trial; the ratio is then to that. */
  readonly trial?: number
  readonly figure?: Figure
  readonly floor?: number
  readonly ratio?: number
  readonly holds?: boolean
}

/** Judges a row by its figure and the floors of the same run; a row whose floor is missing is not judged. */
export function judge(id: string, summary: Summary, floors: ReadonlyMap<string, Summary>): Standing {
  const figure = figures.find((each) => each.id === id)
  if (!figure) return beside(trials[id], summary)
  const measured = summary[figure.at]
  const base = figure.floor && floors.get(figure.floor.of)?.p50
  const floor = base === undefined ? undefined : base * (figure.floor?.scale?.() ?? 1)
  const ratio = floor === undefined ? undefined : measured / floor
  const judged = figure.of === 'ratio' ? ratio : measured
  return {
    figure,
    ...(floor !== undefined && { floor }),
    ...(ratio !== undefined && { ratio }),
    ...(judged !== undefined && { holds: within(judged, figure.limit) }),
  }
}

function beside(trial: number | undefined, summary: Summary): Standing {
  return trial === undefined ? {} : { trial, ratio: summary.p50 / trial }
}

function within(value: number, limit: Figure['limit']): boolean {
  return 'atMost' in limit ? value <= limit.atMost : value >= limit.atLeast
}
