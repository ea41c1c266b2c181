import { limits, PublicError, type Resources } from '@space/contract'
import type { Template } from '@space/contract/node-link'
import { askNode, type NodeApi } from './node.ts'

const keptMs = 1000

export interface ResolvedTemplate {
  readonly digest: string
  readonly resources: Resources
}

/** The templates the node holds, asked for at most once a second. */
export class Templates {
  readonly #nodeApi: NodeApi
  #listing: { readonly atMs: number; readonly templates: Promise<readonly Template[]> } | undefined

  constructor(nodeApi: NodeApi) {
    this.#nodeApi = nodeApi
  }

  /** All templates; throws `service_unavailable` when the node does not answer. */
  list(): Promise<readonly Template[]> {
    const nowMs = performance.now()
    if (this.#listing && nowMs - this.#listing.atMs < keptMs) return this.#listing.templates
    const templates = askNode((options) => this.#nodeApi.listTemplates({}, options)).then(
      (answer) => answer.templates,
    )
    const listing = { atMs: nowMs, templates }
    this.#listing = listing
    templates.catch(() => {
      if (this.#listing === listing) this.#listing = undefined
    })
    return templates
  }

  /** The template a reference means now; `not_found` when there is none. */
  async find(reference: string): Promise<Template> {
    const templates = await this.list()
    const found = templates.find((template) => isMeant(template, reference))
    if (found) return found
    throw new PublicError(
      'not_found',
      `template: there is no ${shown(reference)}; GET /v1/templates lists those there are.`,
      { details: { field: 'template', reason: 'template_missing' } },
    )
  }

  /** The digest a reference means now and the resources it begins with. */
  async resolve(reference: string): Promise<ResolvedTemplate> {
    const { digest, defaultShape } = await this.find(reference)
    return { digest, resources: toResources(defaultShape) }
  }
}

/** All spellings under which a stored reference may have been given. */
export function spellings(reference: string): string[] {
  if (reference.startsWith('sha256:')) return [reference]
  if (!reference.includes(':')) return [reference, `${reference}:latest`]
  return reference.endsWith(':latest') ? [reference, reference.slice(0, -':latest'.length)] : [reference]
}

/** Resources of a shape; what a node leaves open is the product's default. */
export function toResources(shape: Template['defaultShape']): Resources {
  return {
    vcpus: shape?.vcpus || limits.default_vcpus,
    memory_mib: shape?.memoryMib || limits.default_memory_mib,
    disk_mib: shape?.diskMib || limits.default_disk_mib,
  }
}

function isMeant(template: Template, reference: string): boolean {
  if (reference.startsWith('sha256:')) return template.digest === reference
  const wanted = reference.includes(':') ? reference : `${reference}:latest`
  // A tag is the release's own (`latest`) or, for an alias, carries the other name (`seed:latest`).
  return template.tags.some((tag) => (tag.includes(':') ? tag : `${template.name}:${tag}`) === wanted)
}

function shown(reference: string): string {
  return JSON.stringify(reference.length > 80 ? `${reference.slice(0, 80)}…` : reference)
}
