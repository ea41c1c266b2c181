import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The one thing every path follows from: the value of SPACE_HOME. */
export interface SpaceHome {
  readonly home: string
}

/** Where images, templates and what they are made from lie. */
export interface ImagePaths {
  readonly images: string
  readonly currentImage: string
  readonly hostFacts: string
  readonly templates: string
  readonly templateTags: string
  /** Downloads and half-made things; removing it costs only time. */
  readonly cache: string
}

/** The paths below SPACE_HOME this folder of the code owns. */
export function imagePaths({ home }: SpaceHome): ImagePaths {
  const node = join(home, 'node')
  return {
    images: join(node, 'images'),
    currentImage: join(node, 'images', 'current.json'),
    hostFacts: join(node, 'images', 'host.json'),
    templates: join(node, 'templates'),
    templateTags: join(node, 'templates', 'tags.json'),
    cache: join(node, 'cache'),
  }
}

/** The clone this code runs from: sources of the agent, template recipes, npm packages. */
export const projectRoot = fileURLToPath(new URL('../../../../', import.meta.url))
