/**
 * `node bench/floor/main.ts`: the floors of this machine at this moment on stdout (a table on a terminal, else one JSON
 * object a line), progress on stderr. It imports nothing of the product: a bare QEMU, the agent's channel, plain Node and the disk.
 *
 * SPACE_HOME says where the guest image and the template are (default /var/lib/space-dev); `--only=row,…` limits the
 * rows, `--quick` takes the smallest n that says anything.
 */
import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Samples } from '../samples.ts'
import { results, textTable } from '../table.ts'
import { appendSpeed, commitSpeeds, syncTimes } from './disk.ts'
import {
  agentResidentBytes,
  answerTimes,
  execTimes,
  guestVersions,
  makeSnapshot,
  restore,
  streamSpeed,
} from './guest.ts'
import { findImage } from './image.ts'
import { startAhead } from './vmm.ts'

const memoryMib = 1024
const mebibyte = 1_048_576
const channelRowIds = ['exec', 'answer', 'stream', 'agent-resident']
const { values: options } = parseArgs({ options: { only: { type: 'string' }, quick: { type: 'boolean' } } })
const quick = options.quick === true
const wanted = options.only?.split(',')
const home = process.env['SPACE_HOME'] ?? '/var/lib/space-dev'
const folder = await mkdtemp(join(dirname(home), 'space-floor-'))
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    rmSync(folder, { recursive: true, force: true })
    process.exit(130)
  })
try {
  await disk()
  if (['vmm-start', 'claim', ...channelRowIds].some(wants)) await guest()
} finally {
  await rm(folder, { recursive: true, force: true })
}

async function disk(): Promise<void> {
  const appendBytes = (quick ? 64 : 256) * mebibyte
  if (wants('append'))
    report({
      id: 'append',
      title: 'append 256 KiB at a time, one sync',
      unit: 'MB/s',
      values: Array.from({ length: quick ? 3 : 5 }, () => appendSpeed(folder, appendBytes)),
    })
  if (wants('sync'))
    report({
      id: 'sync',
      title: 'append 64 KiB and sync',
      unit: 'ms',
      values: syncTimes(folder, quick ? 50 : 300),
    })
  if (wants('commit'))
    report({
      id: 'commit',
      title: 'SQLite commits, WAL, FULL, four inserts',
      unit: '/s',
      values: await commitSpeeds(folder, quick ? 3 : 10, quick ? 200 : 500),
    })
}

async function guest(): Promise<void> {
  const image = await findImage(home)
  if (wants('vmm-start')) {
    const values: number[] = []
    for (let count = 0; count < (quick ? 3 : 15); count++) {
      const vmm = await startAhead(await mkdtemp(join(folder, 'start-')), memoryMib)
      values.push(vmm.startMs)
      await vmm.quit()
    }
    report({ id: 'vmm-start', title: 'QEMU started to control socket ready', unit: 'ms', values })
  }
  if (!['claim', ...channelRowIds].some(wants)) return
  progress('booting the guest once for its snapshot …')
  const snapshot = await makeSnapshot(folder, image, memoryMib)
  const claims: number[] = []
  const rounds = wants('claim') ? (quick ? 3 : 15) : 1
  for (let round = 1; round <= rounds; round++) {
    const machine = await restore(join(folder, `restore-${round}`), image, memoryMib, snapshot)
    try {
      claims.push(machine.claimMs)
      if (round === rounds) {
        const { agentBuild, kernelRelease } = guestVersions(machine.channel)
        progress(`agent ${agentBuild}, kernel ${kernelRelease}`)
        if (wants('claim'))
          report({ id: 'claim', title: 'claim to first finished command', unit: 'ms', values: claims })
        await channelRows(machine.channel)
      }
    } finally {
      await machine.close()
    }
  }
}

async function channelRows(channel: Parameters<typeof execTimes>[0]): Promise<void> {
  if (wants('exec')) {
    await execTimes(channel, 5)
    const values = await execTimes(channel, quick ? 20 : 200)
    report({ id: 'exec', title: 'fork and exec over the guest channel', unit: 'ms', values })
  }
  if (wants('answer')) {
    const values = await answerTimes(channel, quick ? 50 : 500)
    report({ id: 'answer', title: 'request and answer over the guest channel', unit: 'ms', values })
  }
  if (wants('stream')) {
    const values: number[] = []
    for (let count = 0; count < (quick ? 2 : 5); count++)
      values.push(await streamSpeed(channel, (quick ? 32 : 128) * mebibyte))
    report({ id: 'stream', title: 'one HTTP/2 stream of the guest channel', unit: 'MB/s', values })
  }
  if (wants('agent-resident')) {
    const bytes = await agentResidentBytes(channel)
    report({ id: 'agent-resident', title: 'agent resident', unit: 'MiB', values: [bytes / mebibyte] })
  }
}

function wants(id: string): boolean {
  return !wanted || wanted.includes(id)
}

function report(samples: Samples): void {
  progress(samples.title)
  const line = process.stdout.isTTY ? textTable(results([samples], [])) : JSON.stringify(samples)
  process.stdout.write(`${line}\n`)
}

function progress(line: string): void {
  process.stderr.write(`floor: ${line}\n`)
}
