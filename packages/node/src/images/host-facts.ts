import { readFile } from 'node:fs/promises'
import { imagePaths, type SpaceHome } from './paths.ts'
import { publishJson, readJson } from './publish.ts'
import { measureTscKhz } from './tsc.ts'

/** What is measured once on a host, and again when it started anew. */
export interface HostFacts {
  readonly tscKhz: number
  readonly cpuModel: string
  readonly bootId: string
}

/** A new measurement this near the old one is the same rate: the old value stays, and snapshots made with it fit. */
const sameRatePpm = 30

/** The facts measured since this host started, or undefined. */
export async function loadHostFacts(home: SpaceHome): Promise<HostFacts | undefined> {
  const facts = parseFacts(await readJson(imagePaths(home).hostFacts))
  return facts !== undefined && facts.bootId === (await bootId()) ? facts : undefined
}

/** Measures what this host has and keeps it in `images/host.json`. Takes about two seconds. */
export async function measureHost(home: SpaceHome, signal?: AbortSignal): Promise<HostFacts> {
  const before = parseFacts(await readJson(imagePaths(home).hostFacts))
  const measured = { tscKhz: await measureTscKhz(signal), cpuModel: await cpuModel(), bootId: await bootId() }
  const facts = { ...measured, tscKhz: settledRate(before, measured) }
  await publishJson(imagePaths(home).hostFacts, facts)
  return facts
}

/** The old rate when the new one differs by no more than the measurement's error, on the same processor. */
export function settledRate(before: HostFacts | undefined, measured: HostFacts): number {
  if (before === undefined || before.cpuModel !== measured.cpuModel) return measured.tscKhz
  const ppm = (Math.abs(before.tscKhz - measured.tscKhz) / before.tscKhz) * 1_000_000
  return ppm <= sameRatePpm ? before.tscKhz : measured.tscKhz
}

function parseFacts(value: unknown): HostFacts | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { tscKhz, cpuModel: model, bootId: boot } = value as Record<string, unknown>
  if (typeof tscKhz !== 'number' || typeof model !== 'string' || typeof boot !== 'string') return undefined
  return { tscKhz, cpuModel: model, bootId: boot }
}

async function bootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
}

async function cpuModel(): Promise<string> {
  return /^model name\s*: (.*)$/m.exec(await readFile('/proc/cpuinfo', 'utf8'))?.[1] ?? 'unknown'
}
