import { randomUUID } from 'node:crypto'
import { access, chmod, constants, mkdir, rename, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Logger } from '../../../runtime/logger.ts'
import { chooseInt8 } from './choose-int8.ts'
import { findSourceRoot } from './convert.ts'
import { convertInChild } from './convert-in-child.ts'
import { findChecksum } from './hash-file.ts'
import { getModelFile, type ModelFile, type ModelName, type Precision, readManifest } from './manifest.ts'

/** A file whose bytes are those of the manifest; `size` is the side of the square of pixels that it takes. */
export type Model = { name: ModelName; path: string; sha256: string; size: number }

type Deps = {
  /** Looked through in this order. What none of them has is written to the first that lets us. */
  dirs: string[]
  names: ModelName[]
  precision: Precision
  log: Logger
}

/** The models, converted from nsfwjs where they are not there yet. */
export async function openModels({ dirs, names, precision, log }: Deps): Promise<Model[]> {
  const manifest = await readManifest()
  const encoding = precision === 'fp32' ? 'fp32' : await chooseInt8()
  const models: Model[] = []
  for (const name of names) {
    const wanted = getModelFile(manifest, name, encoding)
    const path = (await findModel(wanted, dirs, log)) ?? (await buildModel(wanted, dirs, log))
    models.push({ name, path, sha256: wanted.sha256, size: wanted.size })
  }
  return models
}

async function findModel(wanted: ModelFile, dirs: string[], log: Logger): Promise<string | undefined> {
  for (const dir of dirs) {
    const path = resolve(dir, wanted.file)
    const found = await stat(path).catch(() => undefined)
    if (found === undefined) continue
    if (found.size === wanted.bytes && (await findChecksum(path))?.sha256 === wanted.sha256) return path
    log.warn({ path }, 'a model is not the one of the manifest and is not used')
  }
  return undefined
}

async function buildModel(wanted: ModelFile, dirs: string[], log: Logger): Promise<string> {
  const { name, encoding, file } = wanted
  const remedy = `Run \`npm run models\` where nsfwjs is installed, or copy ${file} into ASSAY_MODEL_DIR`
  const places = dirs.map((dir) => resolve(dir)).join(', ')
  if (findSourceRoot() === undefined) {
    throw new Error(`The model ${file} is not in ${places}, and nsfwjs is not there to make it from. ${remedy}.`)
  }
  const dir = await findWritable(dirs)
  if (dir === undefined)
    throw new Error(`The model ${file} is not in ${places}, and none can be written to. ${remedy}.`)
  const path = join(dir, file)
  log.info({ path }, 'converting a model of nsfwjs')
  const startedAt = performance.now()
  // Another process may do the same: each has a name of its own, and the last to rename leaves the same bytes.
  const unfinished = join(dir, `.${file}.${randomUUID()}`)
  try {
    await convertInChild(name, encoding, unfinished)
    const made = await findChecksum(unfinished)
    if (made?.sha256 !== wanted.sha256) {
      throw new Error(`nsfwjs gave another ${file} than the manifest tells of: is it another version? ${remedy}.`)
    }
    await rename(unfinished, path)
  } finally {
    await rm(unfinished, { force: true })
  }
  log.info({ path, ms: Math.round(performance.now() - startedAt) }, 'converted a model of nsfwjs')
  return path
}

async function findWritable(dirs: string[]): Promise<string | undefined> {
  for (const dir of dirs.map((dir) => resolve(dir))) {
    try {
      // Not with its parents: below /proc that would never end.
      const isMade = await mkdir(dir).then(
        () => true,
        () => false,
      )
      // Processes of another user read it, whatever the umask.
      if (isMade) await chmod(dir, 0o755)
      await access(dir, constants.W_OK | constants.X_OK)
      return dir
    } catch {}
  }
  return undefined
}
