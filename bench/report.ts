/** `--report`: the run as a page under docs/reports. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunEnvironment } from './environment.ts'
import { markdownTable, type Result } from './table.ts'

/** Writes `docs/reports/bench-<date>.md` and answers its path; a second run of the day replaces the page. */
export async function writeReport(
  environment: RunEnvironment,
  floors: readonly Result[],
  rows: readonly Result[],
): Promise<string> {
  const folder = join(import.meta.dirname, '..', 'docs', 'reports')
  const path = join(folder, `bench-${environment.date.slice(0, 10)}.md`)
  await mkdir(folder, { recursive: true })
  await writeFile(path, page(environment, floors, rows))
  return path
}

function page(environment: RunEnvironment, floors: readonly Result[], rows: readonly Result[]): string {
  const { date, cpu, cores, memoryGib, kernel, load, accelerator, qemu, node, revision } = environment
  return `# Bench of ${date.slice(0, 10)}

| | |
|---|---|
| started | ${date} |
| revision | ${revision} |
| CPU | ${cpu}, ${cores} cores, ${memoryGib} GiB |
| host kernel | ${kernel} |
| load before | ${load.toFixed(1)} |
| QEMU | ${qemu}, ${accelerator} |
| Node.js | ${node} |

Made by \`npm run bench -- --report\`. A row with a floor counts as a ratio to that floor, measured in the same run by
\`bench/floor\`, which imports nothing of the product. For rates, p95 and p99 are the slow end.

## Floors

${markdownTable(floors)}

## Rows

${markdownTable(rows)}
`
}
