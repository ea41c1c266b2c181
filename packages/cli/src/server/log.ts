/**
 * The servers' log: lines of JSON in a file, since the terminal belongs to the person in front of it. The file is
 * moved aside when it grows large; one older part is kept.
 */
import { mkdirSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { destination, type Logger, pino } from 'pino'
import type { LogLevel } from '../settings/settings.ts'
import { runFolder } from './instance.ts'

export interface ServerLog extends Disposable {
  readonly log: Logger
  readonly path: string
}

const maxBytes = 32 * 1024 * 1024
const checkMs = 60_000

/** Opens the log below SPACE_HOME; the folder is made when it is missing. */
export function openLog(home: string, level: LogLevel): ServerLog {
  const folder = runFolder(home)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, 'server.log')
  const file = destination({ dest: path, append: true, mode: 0o600, sync: true })
  const timer = setInterval(() => {
    if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) < maxBytes) return
    renameSync(path, `${path}.1`)
    file.reopen()
  }, checkMs)
  timer.unref()
  return {
    log: pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, file),
    path,
    [Symbol.dispose]() {
      clearInterval(timer)
      file.flushSync()
    },
  }
}
