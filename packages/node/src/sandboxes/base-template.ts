import type { Template } from '../images/template-store.ts'
import type { BaseTemplate } from '../snapshots/make-base.ts'

/** What the making of a base needs to know of a template. */
export function baseTemplate(template: Template): BaseTemplate {
  const { digest, folder, rootImage, diskMib } = template
  return { digest, folder, rootImage, diskMib, user: template.defaults.user }
}
