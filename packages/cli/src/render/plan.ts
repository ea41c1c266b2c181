import { renderBytes, renderDuration } from './quantity.ts'
import { renderTable } from './table.ts'

/** The parts of a set-up step that are told before it is run. */
export interface PlannedStep {
  readonly title: string
  readonly estimate: { readonly fetchBytes: number; readonly diskBytes: number; readonly seconds: number }
  readonly where: string
  readonly undo: string
}

/** What a set-up will do: each step, what it fetches and keeps, where, and how to take all of it back. */
export function renderPlan(steps: readonly PlannedStep[], home: string): string {
  const fetchBytes = sum(steps.map((step) => step.estimate.fetchBytes))
  const diskBytes = sum(steps.map((step) => step.estimate.diskBytes))
  const seconds = sum(steps.map((step) => step.estimate.seconds))
  const rows = steps.map(({ title, estimate, where }) => [
    title,
    size(estimate.fetchBytes),
    size(estimate.diskBytes),
    renderDuration(estimate.seconds * 1000),
    where,
  ])
  const total = ['together', size(fetchBytes), size(diskBytes), `≤ ${renderDuration(seconds * 1000)}`, '']
  const undo = [...new Set(steps.filter((step) => !step.where.startsWith(home)).map((step) => step.undo))]
  return [
    'SPACE will set this machine up:',
    '',
    renderTable(['STEP', 'FETCHES', 'ON DISK', 'TAKES', 'WHERE'], [...rows, total])
      .split('\n')
      .map((line) => `  ${line}`)
      .join('\n'),
    '',
    'To undo it: `space down --purge` removes everything below',
    `${home} and the client configuration. ${undo.join(' ')}`.trimEnd(),
  ].join('\n')
}

function size(bytes: number): string {
  return bytes === 0 ? '–' : renderBytes(bytes)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
