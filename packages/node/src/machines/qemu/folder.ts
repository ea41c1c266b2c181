/** The files a machine has in its folder besides its record, and how they go. */
import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { sockets } from './launch.ts'
import { moveRecord, removeRecord } from './record.ts'

/** Moves a waiting VMM's files to the folder of the machine it becomes: the record first, so that one always names it. */
export function moveMachine(from: string, to: string): void {
  moveRecord(from, to)
  for (const name of Object.values(sockets)) renameSync(join(from, name), join(to, name))
  rmSync(from, { recursive: true, force: true })
}

/** Removes what this driver put into a folder; the record last. Fine when the folder is gone. */
export function removeMachineFiles(folder: string): void {
  if (!existsSync(folder)) return
  for (const name of Object.values(sockets)) rmSync(join(folder, name), { force: true })
  removeRecord(folder)
}
