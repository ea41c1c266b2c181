/** Runs `bench/floor` in a process of its own and takes its rows, one JSON object a line. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { BenchError } from './errors.ts'
import type { Samples } from './samples.ts'

/** The floors named, or all of them. Its progress goes to our stderr. */
export async function measureFloors(home: string, only: readonly string[] | undefined, quick: boolean) {
  const args = [join(import.meta.dirname, 'floor', 'main.ts')]
  if (only) args.push(`--only=${only.join(',')}`)
  if (quick) args.push('--quick')
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, SPACE_HOME: home },
  })
  const stop = () => child.kill('SIGTERM')
  process.once('exit', stop)
  const closed = once(child, 'close')
  const rows: Samples[] = []
  for await (const line of createInterface({ input: child.stdout })) rows.push(JSON.parse(line) as Samples)
  await closed
  process.off('exit', stop)
  if (child.exitCode !== 0) throw new BenchError('The floors could not be measured: see the lines above.')
  return rows
}
