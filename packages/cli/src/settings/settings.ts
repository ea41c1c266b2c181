/**
 * Every setting from the table of variables, read once and checked: a wrong value is refused with its variable's name,
 * never guessed around.
 */
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { type VariableName, variables } from '@space/contract/plain'
import { CliFailure, exitCodes } from '../failure.ts'

export const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const
export type LogLevel = (typeof logLevels)[number]

export interface Settings {
  /** Where everything SPACE keeps lies. */
  readonly home: string
  readonly apiUrl: URL
  readonly dataPlaneUrl: URL
  /** Whether the address was set by hand, and so goes before the configuration file's. */
  readonly apiUrlGiven: boolean
  readonly dataPlaneUrlGiven: boolean
  readonly token: string | undefined
  readonly configPath: string
  readonly machine: 'qemu' | 'firecracker' | undefined
  readonly kernelPackage: string | undefined
  readonly readyMachines: number
  readonly journalBytes: number
  readonly journalSeconds: number
  readonly logLevel: LogLevel
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Reads the settings from an environment; an empty variable counts as not set. */
export function readSettings(env: Environment): Settings {
  const given = (name: VariableName) => env[name] || undefined
  const text = (name: VariableName) => given(name) ?? defaultOf(name)
  return {
    home: path('SPACE_HOME', text('SPACE_HOME')),
    apiUrl: url('SPACE_API_URL', text('SPACE_API_URL')),
    dataPlaneUrl: url('SPACE_DATA_PLANE_URL', text('SPACE_DATA_PLANE_URL')),
    apiUrlGiven: given('SPACE_API_URL') !== undefined,
    dataPlaneUrlGiven: given('SPACE_DATA_PLANE_URL') !== undefined,
    token: given('SPACE_API_TOKEN'),
    configPath: path('SPACE_CONFIG', text('SPACE_CONFIG')),
    machine: choice('SPACE_MACHINE', given('SPACE_MACHINE'), ['qemu', 'firecracker']),
    kernelPackage:
      given('SPACE_KERNEL') === undefined ? undefined : path('SPACE_KERNEL', text('SPACE_KERNEL')),
    readyMachines: whole('SPACE_READY_MACHINES', text('SPACE_READY_MACHINES'), 0, 64),
    journalBytes: whole('SPACE_JOURNAL_BYTES', text('SPACE_JOURNAL_BYTES'), 1_048_576, 2 ** 40),
    journalSeconds: whole('SPACE_JOURNAL_SECONDS', text('SPACE_JOURNAL_SECONDS'), 60, 31_536_000),
    logLevel: choice('SPACE_LOG_LEVEL', text('SPACE_LOG_LEVEL'), logLevels) ?? 'info',
  }
}

function defaultOf(name: VariableName): string {
  return variables.find((variable) => variable.name === name)?.default ?? ''
}

function path(name: VariableName, value: string): string {
  const expanded = value === '~' || value.startsWith('~/') ? join(homedir(), value.slice(1)) : value
  if (!isAbsolute(expanded)) refuse(name, value, 'an absolute path')
  return resolve(expanded)
}

function url(name: VariableName, value: string): URL {
  const parsed = URL.canParse(value) ? new URL(value) : undefined
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol))
    refuse(name, value, 'an http:// or https:// URL')
  return parsed
}

function whole(name: VariableName, value: string, least: number, most: number): number {
  const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
  if (!(number >= least && number <= most)) refuse(name, value, `a whole number from ${least} to ${most}`)
  return number
}

function choice<T extends string>(
  name: VariableName,
  value: string | undefined,
  all: readonly T[],
): T | undefined {
  if (value === undefined) return undefined
  return all.find((one) => one === value) ?? refuse(name, value, `one of ${all.join(', ')}`)
}

function refuse(name: VariableName, value: string, wanted: string): never {
  throw new CliFailure(`${name}=${value} is not ${wanted}`, {
    code: 'invalid_setting',
    exitCode: exitCodes.usage,
    remedy: `set ${name} to ${wanted}, or unset it for its default (${defaultOf(name) || 'none'})`,
  })
}
