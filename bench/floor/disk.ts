/** What plain Node gets out of the disk: appending, syncing, and committing to SQLite as the control plane does. */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

const chunkBytes = 256 * 1024
const syncedBytes = 64 * 1024

/** MB/s of appending `totalBytes` in chunks of 256 KiB to one file, with one sync at the end. */
export function appendSpeed(folder: string, totalBytes: number): number {
  const file = openSync(join(folder, 'append'), 'w')
  const chunk = Buffer.alloc(chunkBytes, 0x61)
  const startedAt = performance.now()
  for (let written = 0; written < totalBytes; written += chunkBytes) writeSync(file, chunk)
  fsyncSync(file)
  const tookMs = performance.now() - startedAt
  closeSync(file)
  return totalBytes / 1000 / tookMs
}

/** Milliseconds of each of `n` appends of 64 KiB followed by a sync. */
export function syncTimes(folder: string, n: number): number[] {
  const file = openSync(join(folder, 'sync'), 'w')
  const chunk = Buffer.alloc(syncedBytes, 0x62)
  const values: number[] = []
  for (let count = 0; count < n; count++) {
    const startedAt = performance.now()
    writeSync(file, chunk)
    fsyncSync(file)
    values.push(performance.now() - startedAt)
  }
  closeSync(file)
  return values
}

/** Commits a second in each of `rounds`: WAL, synchronous=FULL, four inserts a commit, `commits` commits a round. */
export async function commitSpeeds(folder: string, rounds: number, commits: number): Promise<number[]> {
  const home = join(folder, 'sqlite')
  await mkdir(home)
  const database = new DatabaseSync(join(home, 'floor.sqlite'))
  database.exec('pragma journal_mode = wal; pragma synchronous = full')
  database.exec('create table entry (id integer primary key, part integer, body text) strict')
  const insert = database.prepare('insert into entry (part, body) values (?, ?)')
  const body = 'x'.repeat(300)
  const speeds: number[] = []
  for (let round = 0; round < rounds; round++) {
    const startedAt = performance.now()
    for (let count = 0; count < commits; count++) {
      database.exec('begin immediate')
      for (let part = 0; part < 4; part++) insert.run(part, body)
      database.exec('commit')
    }
    speeds.push((commits * 1000) / (performance.now() - startedAt))
  }
  database.close()
  await rm(home, { recursive: true })
  return speeds
}
