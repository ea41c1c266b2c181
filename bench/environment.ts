/** Where a run took place: what a reader needs to compare its report with another one. */
import { execFile } from 'node:child_process'
import { cpus, loadavg, release, totalmem } from 'node:os'
import { promisify } from 'node:util'
import { accelerator } from './accelerator.ts'

const run = promisify(execFile)

export interface RunEnvironment {
  readonly date: string
  readonly cpu: string
  readonly cores: number
  readonly memoryGib: number
  readonly kernel: string
  /** Runnable processes of the last minute, before the run: above half the cores the figures say little. */
  readonly load: number
  readonly accelerator: 'kvm' | 'tcg'
  readonly qemu: string
  readonly node: string
  readonly revision: string
}

/** Reads it; a program that is not there leaves `unknown`. */
export async function runEnvironment(): Promise<RunEnvironment> {
  const revision = await firstLine('git', ['describe', '--always', '--dirty'])
  return {
    date: new Date().toISOString(),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    load: loadavg()[0] ?? 0,
    accelerator,
    qemu: (await firstLine('qemu-system-x86_64', ['--version'])).replace('QEMU emulator version ', ''),
    node: process.versions.node,
    revision,
  }
}

async function firstLine(program: string, args: readonly string[]): Promise<string> {
  const done = await run(program, [...args], { cwd: import.meta.dirname }).catch(() => undefined)
  return done?.stdout.split('\n')[0] || 'unknown'
}
