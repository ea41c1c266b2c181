/**
 * The templates of this node. A release is a folder named by its digest and never changed; tags point at releases.
 *
 *   templates/<sha256 hex>/root.ext4 · template.json      templates/tags.json
 */
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Shape } from '../machines/machine.ts'
import { SetUpError } from './errors.ts'
import { imagePaths, projectRoot, type SpaceHome } from './paths.ts'
import { isErrno, publishJson, readJson } from './publish.ts'
import { Fields, parseDefaults, readRecipe, type TemplateDefaults } from './recipe.ts'
import { buildTemplate } from './template-build.ts'

/** One release of a template. */
export interface Template {
  readonly name: string
  /** `sha256:<64 hex>`. */
  readonly digest: string
  /** Tags that point at this release now, as `name:tag`. */
  readonly tags: readonly string[]
  readonly folder: string
  /** The raw ext4 image every sandbox's disk begins with; read-only. */
  readonly rootImage: string
  readonly recipeHash: string
  /** What the image takes on disk; its apparent size is `diskMib`. */
  readonly sizeBytes: number
  readonly diskMib: number
  readonly defaultShape: Shape
  readonly defaults: TemplateDefaults
  readonly createdAtMs: number
}

export type TemplateProgress = (message: string, fraction?: number) => void

export interface TemplateStore {
  /** All releases, newest first. */
  list(): Promise<Template[]>
  /** Finds a release by `name` (which means `name:latest`), `name:tag` or `sha256:…`; undefined when there is none. */
  resolve(reference: string): Promise<Template | undefined>
  /** Whether the tagged release was made by the recipe as it is now. */
  isCurrent(name: string): Promise<boolean>
  /** Makes a release from the recipe and points the recipe's tags at it. */
  rebuild(name: string, progress?: TemplateProgress, signal?: AbortSignal): Promise<Template>
  /** Removes a release that no tag points at, with its base snapshots. The caller knows that no sandbox needs it. */
  remove(digest: string): Promise<void>
}

const digestPattern = /^sha256:([0-9a-f]{64})$/

/** Opens the store below SPACE_HOME. `recipes` is the folder of recipes, the project's own by default. */
export function templateStore(
  home: SpaceHome,
  recipes: string = join(projectRoot, 'templates'),
): TemplateStore {
  const paths = imagePaths(home)

  const list = async (): Promise<Template[]> => {
    const names = await readdir(paths.templates).catch((error: unknown) => {
      if (isErrno(error, 'ENOENT')) return []
      throw error
    })
    const tags = await readTags(paths.templateTags)
    const releases = names.filter((name) => /^[0-9a-f]{64}$/.test(name))
    const found = await Promise.all(releases.map((name) => readTemplate(join(paths.templates, name), tags)))
    return found.filter((template) => template !== undefined).sort((a, b) => b.createdAtMs - a.createdAtMs)
  }

  const resolve = async (reference: string): Promise<Template | undefined> => {
    const tags = await readTags(paths.templateTags)
    const digest = digestPattern.test(reference) ? reference : tags.get(tagOf(reference))
    const hex = digest === undefined ? undefined : digestPattern.exec(digest)?.[1]
    return hex === undefined ? undefined : await readTemplate(join(paths.templates, hex), tags)
  }

  return {
    list,
    resolve,
    isCurrent: async (name) => (await resolve(name))?.recipeHash === (await readRecipe(recipes, name)).hash,
    rebuild: async (name, progress = () => undefined, signal) => {
      const recipe = await readRecipe(recipes, name)
      const digest = await buildTemplate({ paths, recipe, progress, ...(signal && { signal }) })
      const tags = await readTags(paths.templateTags)
      for (const tag of recipe.tags) tags.set(tag, digest)
      await publishJson(paths.templateTags, Object.fromEntries(tags))
      const template = await resolve(digest)
      if (template === undefined)
        throw new SetUpError(
          'template_missing',
          `${digest} vanished while it was made.`,
          'Try again: space up',
        )
      return template
    },
    remove: async (digest) => {
      const hex = digestPattern.exec(digest)?.[1]
      const tagged = [...(await readTags(paths.templateTags)).values()].includes(digest)
      if (hex === undefined || tagged) return
      await rm(join(paths.templates, hex), { recursive: true, force: true })
    },
  }
}

/** The tag a name stands for: `base` is `base:latest`. */
export function tagOf(reference: string): string {
  return reference.includes(':') ? reference : `${reference}:latest`
}

async function readTags(path: string): Promise<Map<string, string>> {
  const value = await readJson(path)
  return value === undefined ? new Map() : new Map(Object.entries(new Fields(value, 'tags.json').allTexts()))
}

async function readTemplate(
  folder: string,
  tags: ReadonlyMap<string, string>,
): Promise<Template | undefined> {
  const value = await readJson(join(folder, 'template.json'))
  const rootImage = join(folder, 'root.ext4')
  if (value === undefined || (await stat(rootImage).catch(() => undefined)) === undefined) return undefined
  const fields = new Fields(value, 'template.json')
  const digest = fields.text('digest')
  const shape = fields.object('default_shape')
  return {
    name: fields.text('name'),
    digest,
    tags: [...tags].filter(([, target]) => target === digest).map(([tag]) => tag),
    folder,
    rootImage,
    recipeHash: fields.text('recipe_hash'),
    sizeBytes: fields.number('size_bytes'),
    diskMib: fields.number('disk_mib'),
    defaultShape: { vcpus: shape.number('vcpus'), memoryMib: shape.number('memory_mib') },
    defaults: parseDefaults(fields.object('defaults')),
    createdAtMs: Date.parse(fields.text('created_at')),
  }
}
