import { SetUpError } from './errors.ts'

/**
 * What the agent loads before anything else: the devices of every machine. A module that the kernel has built in is
 * left out.
 */
export const initramfsModules = [
  'virtio_mmio',
  'virtio_blk',
  'virtio_net',
  'virtio_console',
  'virtio_rng',
  'virtio_balloon',
  'vmw_vsock_virtio_transport',
] as const

/** Which modules a module needs, by path below `lib/modules/<release>`, as `depmod` writes it to `modules.dep`. */
export type ModuleNeeds = ReadonlyMap<string, readonly string[]>

/** Reads the text of a `modules.dep`. */
export function parseModuleNeeds(text: string): ModuleNeeds {
  const needs = new Map<string, readonly string[]>()
  for (const line of text.split('\n')) {
    const colon = line.indexOf(':')
    if (colon < 0) continue
    needs.set(
      line.slice(0, colon),
      line
        .slice(colon + 1)
        .split(' ')
        .filter(Boolean),
    )
  }
  return needs
}

/** Reads the text of a `modules.builtin`: the names of what the kernel has in itself. */
export function parseBuiltinModules(text: string): ReadonlySet<string> {
  return new Set(text.split('\n').filter(Boolean).map(moduleName))
}

/**
 * The paths of the wanted modules and of all they need, each after what it needs, so that they can be loaded in this
 * order one by one.
 */
export function loadOrder(
  wanted: readonly string[],
  needs: ModuleNeeds,
  builtin: ReadonlySet<string>,
): string[] {
  const pathOf = new Map([...needs.keys()].map((path) => [moduleName(path), path]))
  const order = new Set<string>()
  const visiting = new Set<string>()
  const visit = (path: string) => {
    if (order.has(path) || visiting.has(path)) return
    visiting.add(path)
    for (const needed of needs.get(path) ?? []) visit(needed)
    order.add(path)
  }
  for (const name of wanted) {
    const path = pathOf.get(name)
    if (path !== undefined) visit(path)
    else if (!builtin.has(name))
      throw new SetUpError(
        'kernel_unusable',
        `The kernel has no module ${name}.`,
        "Unset SPACE_KERNEL to use Debian's linux-image-cloud-amd64.",
      )
  }
  return [...order]
}

/** The kernel's own name of a module file: `virtio-rng.ko` is `virtio_rng`. */
export function moduleName(path: string): string {
  const file = path.slice(path.lastIndexOf('/') + 1)
  return file.replace(/\.ko(\.\w+)?$/, '').replaceAll('-', '_')
}
