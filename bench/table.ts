/** The results as lines of text, for the terminal and, as Markdown, for the report. */
import { judge, type Standing } from './figures.ts'
import { type Samples, type Summary, summarise } from './samples.ts'

export interface Result {
  readonly id: string
  readonly title: string
  readonly unit: string
  readonly summary: Summary
  readonly standing: Standing
}

const columns = ['row', 'n', 'p50', 'p95', 'p99', 'unit', 'floor', 'ratio', 'figure', '']

/** Summaries and standings; `floors` are the floors of the same run. */
export function results(rows: readonly Samples[], floors: readonly Samples[]): Result[] {
  const base = new Map(floors.map((floor) => [floor.id, summarise(floor)]))
  return rows.map((row) => {
    const summary = summarise(row)
    return { id: row.id, title: row.title, unit: row.unit, summary, standing: judge(row.id, summary, base) }
  })
}

/** A table with aligned columns. */
export function textTable(rows: readonly Result[]): string {
  const cells = [columns, ...rows.map(cellsOf)]
  const widths = columns.map((_, at) => Math.max(...cells.map((row) => row[at]?.length ?? 0)))
  return cells
    .map((row) =>
      row
        .map((cell, at) => (numeric(at) ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** The same as a Markdown table. */
export function markdownTable(rows: readonly Result[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const rule = columns.map((_, at) => (numeric(at) ? '---:' : '---'))
  return [line(columns), line(rule), ...rows.map((row) => line(cellsOf(row)))].join('\n')
}

function cellsOf({ title, unit, summary, standing }: Result): string[] {
  const { figure, floor, ratio, holds, trial } = standing
  return [
    title,
    String(summary.n),
    rounded(summary.p50),
    rounded(summary.p95),
    rounded(summary.p99),
    unit,
    floor === undefined ? '' : rounded(floor),
    ratio === undefined ? '' : `${ratio.toFixed(2)} ×`,
    figure ? figureText(figure, unit) : trial === undefined ? '' : `trial ${trial} ${unit}`,
    holds === undefined ? '' : holds ? 'ok' : 'MISS',
  ]
}

function figureText(figure: NonNullable<Standing['figure']>, unit: string): string {
  const sign = 'atMost' in figure.limit ? '≤' : '≥'
  const number = 'atMost' in figure.limit ? figure.limit.atMost : figure.limit.atLeast
  if (figure.of === 'ratio') return `${sign} ${number} × ${figure.floor?.title ?? 'floor'}`
  return `${figure.at} ${sign} ${number} ${unit}`
}

function numeric(column: number): boolean {
  return (column >= 1 && column <= 4) || column === 6 || column === 7
}

function rounded(value: number): string {
  if (!Number.isFinite(value)) return '–'
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)
}
