import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Shape } from '../machines/machine.ts'
import { SetUpError } from './errors.ts'
import { isErrno } from './publish.ts'

/** What a template is made from: `templates/<name>/recipe.json` beside the `set-up.sh` that runs inside the new root. */
export interface Recipe {
  readonly folder: string
  /** Names the recipe's content, so that a changed recipe is told from the one a template was made by. */
  readonly hash: string
  readonly name: string
  readonly tags: readonly string[]
  readonly suite: string
  readonly packages: readonly string[]
  /** Path patterns no package may bring files into. */
  readonly leftOut: readonly string[]
  readonly npm: { readonly version: string; readonly integrity: string }
  readonly diskMib: number
  readonly defaultShape: Shape
  readonly defaults: TemplateDefaults
}

/** What a command gets that names nothing else. */
export interface TemplateDefaults {
  readonly user: string
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

const maxRecipeBytes = 64 * 1024

/** Reads a recipe; `template_missing` when there is none of that name, `recipe_invalid` when it cannot be understood. */
export async function readRecipe(templatesFolder: string, name: string): Promise<Recipe> {
  const folder = join(templatesFolder, name)
  try {
    const text = await readFile(join(folder, 'recipe.json'), 'utf8')
    if (text.length > maxRecipeBytes) throw invalid(name, 'it is too large')
    return parseRecipe(folder, await folderHash(folder), JSON.parse(text))
  } catch (error) {
    if (isErrno(error, 'ENOENT'))
      throw new SetUpError('template_missing', `There is no recipe templates/${name}.`, 'space template ls')
    if (error instanceof SyntaxError) throw invalid(name, error.message)
    throw error
  }
}

function parseRecipe(folder: string, hash: string, value: unknown): Recipe {
  const root = new Fields(value, 'recipe')
  const npm = root.object('npm')
  const shape = root.object('default_shape')
  const recipe = {
    folder,
    hash,
    name: root.text('name'),
    tags: root.texts('tags'),
    suite: root.text('suite'),
    packages: root.texts('packages'),
    leftOut: root.texts('left_out'),
    npm: { version: npm.text('version'), integrity: npm.text('integrity') },
    diskMib: root.number('disk_mib'),
    defaultShape: { vcpus: shape.number('vcpus'), memoryMib: shape.number('memory_mib') },
    defaults: parseDefaults(root.object('defaults')),
  }
  if (recipe.packages.some((name) => !/^[a-z0-9][a-z0-9+.-]+$/.test(name)))
    throw invalid(recipe.name, 'a package name is none')
  return recipe
}

/** Reads the defaults of a recipe or of a template's record. */
export function parseDefaults(fields: Fields): TemplateDefaults {
  return { user: fields.text('user'), cwd: fields.text('cwd'), env: fields.object('env').allTexts() }
}

/** Typed reading of a JSON object this project wrote: the wrong kind of value is `recipe_invalid`, naming the field. */
export class Fields {
  readonly #value: Record<string, unknown>
  readonly #name: string

  constructor(value: unknown, name: string) {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw invalid(name, 'it is no object')
    this.#value = value as Record<string, unknown>
    this.#name = name
  }

  text(field: string): string {
    const value = this.#value[field]
    if (typeof value !== 'string') throw invalid(this.#name, `${field} is no text`)
    return value
  }

  number(field: string): number {
    const value = this.#value[field]
    if (typeof value !== 'number') throw invalid(this.#name, `${field} is no number`)
    return value
  }

  texts(field: string): string[] {
    const value = this.#value[field]
    if (!Array.isArray(value) || value.some((item) => typeof item !== 'string'))
      throw invalid(this.#name, `${field} is no list of texts`)
    return value
  }

  object(field: string): Fields {
    return new Fields(this.#value[field], `${this.#name}.${field}`)
  }

  allTexts(): Record<string, string> {
    return Object.fromEntries(Object.keys(this.#value).map((field) => [field, this.text(field)]))
  }
}

async function folderHash(folder: string): Promise<string> {
  const hash = createHash('sha256')
  for (const name of (await readdir(folder)).sort())
    hash
      .update(`${name}\0`)
      .update(await readFile(join(folder, name)))
      .update('\0')
  return hash.digest('hex')
}

function invalid(name: string, why: string): SetUpError {
  return new SetUpError(
    'recipe_invalid',
    `The record of ${name} cannot be used: ${why}.`,
    `git checkout templates`,
  )
}
