import assert from 'node:assert/strict'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { pino } from 'pino'
import { hashFile, modelsDir } from '../../src/engines/nsfw/models/manifest.ts'
import { openModels } from '../../src/engines/nsfw/models/open-models.ts'
import { openTestModels } from './engine-support.ts'

const mid = { names: ['mobilenet-v2-mid' as const], precision: 'int8' as const, log: pino({ level: 'silent' }) }
let dir = ''

/** Puts the model into the directory, which takes a hundredth of the time of a conversion. */
async function place(into: string) {
  const [shipped] = await openTestModels()
  assert.ok(shipped)
  await mkdir(into, { recursive: true })
  const path = join(into, basename(shipped.path))
  await cp(shipped.path, path)
  return { ...shipped, path }
}

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'assay-models-'))
})

afterEach(() => rm(dir, { recursive: true, force: true }))

test('a model that is nowhere is converted, readable by every user whatever the umask, and found the next time', async () => {
  const dirs = [join(dir, 'none'), join(dir, 'other')]
  const before = process.umask(0o077)
  const [model] = await openModels({ ...mid, dirs }).finally(() => process.umask(before))
  assert.ok(model)
  assert.equal(model.path.startsWith(`${dirs[0]}/mobilenet-v2-mid.`), true)
  assert.equal(model.form.shape.side, 224)
  assert.equal(await hashFile(model.path), model.sha256)
  const { mtimeMs, mode } = await stat(model.path)
  assert.equal(mode & 0o777, 0o644)
  assert.equal((await stat(dirs[0] ?? '')).mode & 0o777, 0o755)
  assert.deepEqual(await openModels({ ...mid, dirs }), [model])
  assert.equal((await stat(model.path)).mtimeMs, mtimeMs)
})

test('a file that is not the model is replaced', async () => {
  const model = await place(dir)
  const bytes = await readFile(model.path)
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1
  await writeFile(model.path, bytes)
  await openModels({ ...mid, dirs: [dir] })
  assert.equal(await hashFile(model.path), model.sha256)
  await writeFile(model.path, 'cut off')
  await openModels({ ...mid, dirs: [dir] })
  assert.equal(await hashFile(model.path), model.sha256)
})

test('a model that lies in a later directory is used where it lies', async () => {
  const later = join(dir, 'later')
  const model = await place(later)
  const earlier = join(dir, 'earlier')
  await mkdir(earlier)
  assert.deepEqual(await openModels({ ...mid, dirs: [earlier, later] }), [model])
  assert.deepEqual(await readdir(earlier), [])
})

test('several that convert the same model at once all get it and leave nothing else', async () => {
  const opened = await Promise.all([1, 2].map(() => openModels({ ...mid, dirs: [dir] })))
  for (const [model] of opened) assert.equal(await hashFile(model?.path ?? ''), model?.sha256)
  assert.equal((await readdir(dir)).length, 1)
})

test('a directory that cannot be written to is passed over', async () => {
  // Below a file, because root, as which some run the tests, may write everywhere.
  await writeFile(join(dir, 'file'), '')
  const [model] = await openModels({ ...mid, dirs: [join(dir, 'file', 'models'), join(dir, 'good')] })
  assert.equal(model?.path.startsWith(join(dir, 'good')), true)
  await assert.rejects(openModels({ ...mid, dirs: [join(dir, 'file', 'models')] }), /ASSAY_MODEL_DIR/)
})

test('without nsfwjs one is told what to do, and models that are there are used', async () => {
  const model = await place(join(dir, 'there'))
  // A copy of the code in a place where nsfwjs is not installed.
  const elsewhere = join(dir, 'elsewhere/packages/server')
  for (const folder of ['engines/nsfw/models', 'engines/child-process', 'engines/jail', 'runtime']) {
    await cp(join(import.meta.dirname, '../../src', folder), join(elsewhere, 'src', folder), { recursive: true })
  }
  await cp(join(import.meta.dirname, '../../package.json'), join(elsewhere, 'package.json'))
  // An empty package hides an installation in a parent directory.
  await mkdir(join(elsewhere, 'node_modules/nsfwjs'), { recursive: true })
  await writeFile(join(elsewhere, 'node_modules/nsfwjs/package.json'), '{ "exports": {} }')
  await symlink(dirname(fileURLToPath(import.meta.resolve('koffi'))), join(elsewhere, 'node_modules/koffi'))
  await mkdir(join(elsewhere, 'models'))
  await cp(join(modelsDir, 'manifest.json'), join(elsewhere, 'models/manifest.json'))
  const url = pathToFileURL(join(elsewhere, 'src/engines/nsfw/models/open-models.ts')).href
  const { openModels: openElsewhere } = (await import(url)) as { openModels: typeof openModels }
  await assert.rejects(openElsewhere({ ...mid, dirs: [dir] }), /nsfwjs.*npm run models.*ASSAY_MODEL_DIR/)
  assert.deepEqual(await openElsewhere({ ...mid, dirs: [join(dir, 'there')] }), [model])
})
