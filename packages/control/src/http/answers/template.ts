import type { Template } from '@space/contract'
import type { Template as NodeTemplate } from '@space/contract/node-link'
import { toTime } from '../../clock.ts'
import { toResources } from '../../node-link/templates.ts'

/** A template of the node as it is answered. */
export function templateAnswer(template: NodeTemplate): Template {
  return {
    name: template.name,
    tags: template.tags,
    digest: template.digest,
    size_bytes: Number(template.sizeBytes),
    resources: toResources(template.defaultShape),
    created_at: toTime(Number(template.createdAtUnixMs)),
    builds: [],
  }
}
