import { chmod, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { hostSources } from './apt.ts'
import { makeExt4, usedBytes } from './ext4.ts'
import { imageDigest } from './image-digest.ts'
import type { ImagePaths } from './paths.ts'
import { publishFolder, publishJson, withWorkFolder } from './publish.ts'
import type { Recipe } from './recipe.ts'
import { makeRootFolder } from './root-folder.ts'

export interface TemplateBuild {
  readonly paths: ImagePaths
  readonly recipe: Recipe
  readonly progress: (message: string, fraction?: number) => void
  readonly signal?: AbortSignal
}

/** Makes a template's release: root folder, then image, then digest. Answers the digest. */
export async function buildTemplate({ paths, recipe, progress, signal }: TemplateBuild): Promise<string> {
  const run = signal === undefined ? {} : { signal }
  return await withWorkFolder(paths.cache, `template-${recipe.name}`, async (work) => {
    const sources = await hostSources(signal)
    const root = await makeRootFolder({ recipe, sources, work, progress, ...run })
    progress('writing the image', 0.92)
    const image = join(work, 'root.ext4')
    await makeExt4({ image, content: root, kind: 'root', sizeBytes: recipe.diskMib * 1024 * 1024, ...run })
    await chmod(image, 0o444)
    progress('reading the image back', 0.97)
    const digest = await imageDigest(image, recipe.hash)
    await publishRelease(paths, recipe, image, digest)
    return digest
  })
}

async function publishRelease(
  paths: ImagePaths,
  recipe: Recipe,
  image: string,
  digest: string,
): Promise<void> {
  const folder = join(paths.templates, digest.slice('sha256:'.length))
  await publishFolder(folder, async (making) => {
    const record = {
      name: recipe.name,
      digest,
      recipe_hash: recipe.hash,
      size_bytes: await usedBytes(image),
      disk_mib: recipe.diskMib,
      default_shape: { vcpus: recipe.defaultShape.vcpus, memory_mib: recipe.defaultShape.memoryMib },
      defaults: recipe.defaults,
      created_at: new Date().toISOString(),
    }
    await publishJson(join(making, 'template.json'), record)
    await rename(image, join(making, 'root.ext4'))
  })
}
