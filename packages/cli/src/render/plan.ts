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
  const outside = steps.filter((step) => !step.where.startsWith(home))
  const rows = steps.map((step) => [
    size(step.estimate.fetchBytes),
    size(step.estimate.diskBytes),
    renderDuration(step.estimate.seconds * 1000),
    outside.includes(step) ? `${step.title}: ${step.where}` : step.title,
  ])
  const total = [size(fetchBytes), size(diskBytes), `≤ ${renderDuration(seconds * 1000)}`, 'together']
  const table = renderTable(['FETCHES', 'ON DISK', 'TAKES', 'STEP'], [...rows, total])
  return [
    'SPACE will set this machine up:',
    '',
    ...table.split('\n').map((line) => `  ${line}`),
    '',
    `Where nothing else is said it goes to ${home}.`,
    'To undo it: `space down --purge` removes all of that and the client configuration.',
    ...new Set(outside.map((step) => `  ${step.undo}`)),
  ].join('\n')
}

function size(bytes: number): string {
  return bytes === 0 ? '–' : renderBytes(bytes)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
