import { randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { chmod, mkdir, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { syncDirectory } from '../../../runtime/files.ts'
import {
  hashFile,
  ModelRefused,
  maxManifestBytes,
  type OwnManifest,
  parseOwnManifest,
  toManifestText,
} from './manifest.ts'
import type { Model } from './model.ts'

const manifestName = 'manifest.json'

/** The most that the format of ONNX files allows. */
const maxModelBytes = 2_147_483_647

/** Reads the manifest in a directory and checks its model file against it. The file is hashed, not parsed. */
export async function readOwnModel(dir: string, hash: (path: string) => Promise<string> = hashFile): Promise<Model> {
  const { name, version, file, sha256, form } = await readOwnManifest(dir)
  const path = resolve(dir, file)
  await requireFile(path, maxModelBytes)
  if ((await hash(path)) !== sha256) throw new ModelRefused(`${path} does not have the checksum of its manifest.`)
  return { name, title: `${name} ${version}`, path, sha256, isOwn: true, form }
}

/** Returns `hashFile` that hashes a file again only after its size or time changed: a model has hundreds of megabytes. */
export function makeHashMemory(): (path: string) => Promise<string> {
  const known = new Map<string, { mark: string; sha256: string }>()
  return async (path) => {
    const { size, mtimeMs, ctimeMs, ino } = await stat(path)
    const mark = [size, mtimeMs, ctimeMs, ino].join()
    const found = known.get(path)
    if (found?.mark === mark) return found.sha256
    const sha256 = await hashFile(path)
    known.set(path, { mark, sha256 })
    return sha256
  }
}

/** A copy of a model in the directory of models, which `place` puts into use and `discard` removes. */
export type Draft = { model: Model; manifest: OwnManifest; place(): Promise<void>; discard(): Promise<void> }

/**
 * Copies a model to a directory of its own below `modelsDir`, under a temporary name, and checks the copy. The model of
 * the same name that was placed before stays beside the new one: running processes open it again until they have the
 * new one.
 */
export async function draftOwnModel(source: string, modelsDir: string, signal: AbortSignal): Promise<Draft> {
  const given = await readOwnManifest(source)
  const from = resolve(source, given.file)
  await requireFile(from, maxModelBytes)
  const manifest = { ...given, file: `${given.sha256}.onnx` }
  await makeReadableDir(modelsDir)
  const dir = join(modelsDir, `.${randomUUID()}`)
  const discard = () => rm(dir, { recursive: true, force: true })
  try {
    await makeReadableDir(dir)
    // Only this user may read the copy until its checksum shows that it is no other file by mistake.
    const copy = createWriteStream(join(dir, manifest.file), { flags: 'wx', mode: 0o600, flush: true })
    await pipeline(createReadStream(from), copy, { signal })
    await writeFile(join(dir, manifestName), toManifestText(manifest), { flush: true })
    const model = await readOwnModel(dir)
    for (const name of [manifest.file, manifestName]) await chmod(join(dir, name), 0o644)
    return { model, manifest, place: () => place(dir, modelsDir, manifest).finally(discard), discard }
  } catch (error) {
    await discard()
    throw error
  }
}

async function place(draft: string, modelsDir: string, { name, file }: OwnManifest) {
  const target = join(modelsDir, name)
  const previous = await readOwnManifest(target).catch(() => undefined)
  await makeReadableDir(target)
  await rename(join(draft, file), join(target, file))
  // From here on services find the new model: its file is complete, and the manifest appears at once.
  await rename(join(draft, manifestName), join(target, manifestName))
  await syncDirectory(target)
  const kept = [manifestName, file, previous?.file]
  for (const other of await readdir(target)) if (!kept.includes(other)) await rm(join(target, other), { force: true })
}

/** Lists the models in the directory by name; those that cannot be used have a sentence for a manifest. */
export async function listOwnModels(modelsDir: string): Promise<{ name: string; manifest: OwnManifest | string }[]> {
  const entries = await readdir(modelsDir, { withFileTypes: true }).catch(() => [])
  const names = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.')).map(({ name }) => name)
  return Promise.all(
    names.sort().map(async (name) => {
      const manifest = await readOwnManifest(join(modelsDir, name)).catch((error: Error) => error.message)
      return { name, manifest }
    }),
  )
}

/** Reads the manifest in a directory. Throws `ModelRefused` when there is none that can be used. */
async function readOwnManifest(dir: string): Promise<OwnManifest> {
  const path = join(dir, manifestName)
  await requireFile(path, maxManifestBytes)
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(maxManifestBytes))
    return parseOwnManifest(buffer.subarray(0, bytesRead).toString('utf8'))
  } finally {
    await file.close()
  }
}

async function requireFile(path: string, maxBytes: number) {
  const found = await stat(path).catch(() => undefined)
  if (found === undefined) throw new ModelRefused(`There is no ${path}.`)
  if (!found.isFile()) throw new ModelRefused(`${path} is not a file.`)
  if (found.size === 0) throw new ModelRefused(`${path} is empty.`)
  if (found.size > maxBytes) throw new ModelRefused(`${path} has more than ${maxBytes} bytes.`)
}

/** Processes of another user read the directory, so its mode must not depend on the umask. */
async function makeReadableDir(dir: string) {
  await mkdir(dir, { recursive: true })
  await chmod(dir, 0o755)
}
