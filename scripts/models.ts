import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { findSourceRoot, listSourceFiles, toInputSize } from '../packages/server/src/engines/nsfw/models/convert.ts'
import {
  builtDir,
  type Encoding,
  encodings,
  findChecksum,
  hashFile,
  type Manifest,
  type ModelName,
  manifestPath,
  modelNames,
  readManifest,
} from '../packages/server/src/engines/nsfw/models/manifest.ts'
import { convertInChild } from '../packages/server/src/engines/nsfw/models/open-models.ts'

/**
 * `npm run models` converts the models of nsfwjs to ONNX, except existing ones. `--check` converts all of them
 * in a temporary directory and compares their checksums; `--write-manifest` converts all of them and writes their
 * checksums to the manifest.
 */
const { values: options } = parseArgs({
  options: { check: { type: 'boolean' }, 'write-manifest': { type: 'boolean' } },
})
const convertsAll = options.check || options['write-manifest']
const root = findSourceRoot()
if (root === undefined) throw new Error('nsfwjs is not installed: npm install')

const manifest = options['write-manifest'] ? undefined : await readManifest()
const models: Manifest['models'] = []
const temporary = await mkdtemp(join(tmpdir(), 'assay-models-'))
try {
  await mkdir(builtDir, { recursive: true })
  for (const name of modelNames) {
    const sources = await hashSources(name)
    for (const encoding of encodings) {
      const file = `${name}.${encoding}.onnx`
      const wanted = manifest?.models.find((model) => model.file === file)
      const existing = convertsAll ? undefined : await findChecksum(join(builtDir, file))
      const isCached = existing !== undefined && existing.sha256 === wanted?.sha256
      const startedAt = performance.now()
      const { bytes, sha256 } = isCached ? existing : await build(name, encoding, file)
      const isRight = manifest === undefined || sha256 === wanted?.sha256
      if (!isRight) process.exitCode = 1
      const ms = Math.round(performance.now() - startedAt)
      const remark = isRight ? (isCached ? 'unchanged' : `${ms} ms`) : `DIFFERS: the manifest has ${wanted?.sha256}`
      process.stdout.write(`${file.padEnd(28)} ${String(bytes).padStart(9)}  ${sha256}  ${remark}\n`)
      models.push({ name, encoding, file, bytes, sha256, size: toInputSize(name), sources })
    }
  }
} finally {
  await rm(temporary, { recursive: true, force: true })
}
if (options['write-manifest']) await writeManifest(root)

async function build(name: ModelName, encoding: Encoding, file: string) {
  const dir = options.check ? temporary : builtDir
  const unfinished = join(dir, `.${file}.${process.pid}`)
  try {
    await convertInChild(name, encoding, unfinished)
    await rename(unfinished, join(dir, file))
  } finally {
    await rm(unfinished, { force: true })
  }
  const checksum = await findChecksum(join(dir, file))
  if (checksum === undefined) throw new Error(`${file} was not written`)
  return checksum
}

function hashSources(name: ModelName) {
  const files = listSourceFiles(name)
  return Promise.all(files.map(async ({ file, path }) => ({ file, sha256: await hashFile(path) })))
}

async function writeManifest(root: string) {
  const { version, license } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const source = { package: 'nsfwjs', version, homepage: 'https://github.com/infinitered/nsfwjs' }
  const manifest: Manifest = { licence: license, source, models }
  await writeFile(manifestPath, `${JSON.stringify(manifest, undefined, 2)}\n`)
  process.stdout.write(`${manifestPath} is written\n`)
}
