/** Where a node keeps what: everything below `<SPACE_HOME>/node`. */
import { join } from 'node:path'
import { isId, PublicError } from '@space/contract'

export interface NodePaths {
  readonly database: string
  readonly sandboxes: string
  readonly templates: string
}

/** The paths below SPACE_HOME. */
export function nodePaths(home: string): NodePaths {
  const node = join(home, 'node')
  return {
    database: join(node, 'node.sqlite'),
    sandboxes: join(node, 'sandboxes'),
    templates: join(node, 'templates'),
  }
}

/** The places of one sandbox: its folder holds all of it. */
export interface SandboxPaths {
  readonly folder: string
  readonly record: string
  readonly linkSecrets: string
  readonly machine: string
  readonly journals: string
  readonly writableLayer: string
  /** Its own names of the layers it shares: a hard link keeps a layer as long as somebody needs it. */
  readonly baseLayer: string
  readonly frozenLayer: (index: number) => string
}

/** Throws `invalid_request` for an id that is none, so that no path is ever made of one. */
export function sandboxPaths(paths: NodePaths, sandboxId: string): SandboxPaths {
  if (!isId('sandbox', sandboxId)) throw notAnId('sandbox_id')
  const folder = join(paths.sandboxes, sandboxId)
  return {
    folder,
    record: join(folder, 'sandbox.json'),
    linkSecrets: join(folder, 'link.json'),
    machine: join(folder, 'machine'),
    journals: join(folder, 'journal'),
    writableLayer: join(folder, 'disk.qcow2'),
    baseLayer: join(folder, 'root.ext4'),
    frozenLayer: (index) => join(folder, `frozen-${index}.qcow2`),
  }
}

/** The folder of a process's journal. */
export function journalFolder(paths: NodePaths, sandboxId: string, processId: string): string {
  if (!isId('process', processId)) throw notAnId('process_id')
  return join(sandboxPaths(paths, sandboxId).journals, processId)
}

function notAnId(field: string): PublicError {
  return new PublicError('invalid_request', `${field} is no id of SPACE.`, { details: { field } })
}
