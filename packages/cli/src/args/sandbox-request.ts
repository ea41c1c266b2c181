import type { CreateSandboxRequest } from '@space/sdk'
import type { Command } from 'commander'
import { collectPairs } from './pairs.ts'
import { parseCount, parseSeconds } from './quantities.ts'

export interface SandboxOptions {
  readonly template: string
  readonly vcpus?: number
  readonly memoryMib?: number
  readonly diskMib?: number
  readonly metadata?: Readonly<Record<string, string>>
  readonly lifetime?: number
}

/** The options of a sandbox that is being created. */
export function addSandboxOptions(command: Command): Command {
  return command
    .option('-t, --template <name>', 'name, name:tag or digest of the template', 'base')
    .option('--vcpus <n>', "virtual CPUs (default: the template's)", parseCount)
    .option('--memory-mib <n>', "memory in MiB (default: the template's)", parseCount)
    .option('--disk-mib <n>', "disk in MiB (default: the template's)", parseCount)
    .option('-m, --metadata <KEY=VALUE>', 'a pair to find it by; repeatable', collectPairs)
    .option('--lifetime <time>', 'delete it after this long: 30m, 2h, 1d', parseSeconds)
}

/** The request for a sandbox with these options. */
export function sandboxRequest(options: SandboxOptions): CreateSandboxRequest {
  const { vcpus, memoryMib, diskMib } = options
  const resources = {
    ...(vcpus === undefined ? {} : { vcpus }),
    ...(memoryMib === undefined ? {} : { memory_mib: memoryMib }),
    ...(diskMib === undefined ? {} : { disk_mib: diskMib }),
  }
  return {
    template: options.template,
    ...(Object.keys(resources).length === 0 ? {} : { resources }),
    ...(options.metadata === undefined ? {} : { metadata: { ...options.metadata } }),
    ...(options.lifetime === undefined ? {} : { lifetime_seconds: Math.ceil(options.lifetime) }),
  }
}
