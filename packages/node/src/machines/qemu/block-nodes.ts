/** Block nodes as `blockdev-add` takes them: pure data. Every file is named by us; no header's file name is followed. */

export type BlockNode = Readonly<Record<string, unknown>>

/** Names the device argument of the command line refers to. */
export const rootNode = 'root'
export const modulesNode = 'modules'

/** Node name of the writable layer after `count` freezes. */
export function layerNode(count: number): string {
  return count === 0 ? rootNode : `layer-${count}`
}

/** How often the active node's name says that a layer was frozen. */
export function freezesOf(node: string): number {
  return node === rootNode ? 0 : Number(/^layer-(\d{1,4})$/.exec(node)?.[1] ?? 0)
}

function protocol(filename: string, readOnly: boolean): BlockNode {
  // Locks are kept per open file of a process and would only stand between machines that share a base.
  return {
    driver: 'file',
    filename,
    locking: 'off',
    'read-only': readOnly,
    ...(readOnly ? {} : { discard: 'unmap' }),
  }
}

/** A raw, read-only image. */
export function rawImage(filename: string, name: string): BlockNode {
  return { driver: 'raw', 'node-name': name, 'read-only': true, file: protocol(filename, true) }
}

/** A frozen layer over the node `backing`. */
export function frozenLayer(name: string, filename: string, backing: string): BlockNode {
  return { driver: 'qcow2', 'node-name': name, 'read-only': true, file: protocol(filename, true), backing }
}

/** A layer that is written. `backing` null: what is below is joined by `blockdev-snapshot`. */
export function writableLayer(name: string, filename: string, backing: string | null): BlockNode {
  return { driver: 'qcow2', 'node-name': name, discard: 'unmap', file: protocol(filename, false), backing }
}

/** Node name of the base image (0) and of the frozen layers over it (1, 2, …). */
export function belowNode(index: number): string {
  return `below-${index}`
}

/** The node of one read-only file of a chain; the first is the raw base image. */
export function readOnlyNode(index: number, filename: string): BlockNode {
  const name = belowNode(index)
  return index === 0 ? rawImage(filename, name) : frozenLayer(name, filename, belowNode(index - 1))
}
