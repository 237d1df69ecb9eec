import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { realpathSync } from 'node:fs'
import { access, chmod, constants, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Logger } from '../../../runtime/logger.ts'
import { toNodeLaunch } from '../../child-process/node-launch.ts'
import { isEscape, type OnEscape, policies } from '../../jail/policy.ts'
import { findSourceRoot } from './convert.ts'
import {
  type Encoding,
  findChecksum,
  getModelFile,
  type ModelFile,
  type ModelName,
  modelsDir,
  type Precision,
  readManifest,
} from './manifest.ts'
import { type Model, shippedForms } from './model.ts'

type Deps = {
  /** Searched in this order. A model that none of them has is written to the first writable one. */
  dirs: string[]
  names: ModelName[]
  precision: Precision
  log: Logger
  onEscape?: OnEscape | undefined
}

const titles: Record<ModelName, string> = { 'mobilenet-v2-mid': 'MobileNetV2Mid', 'inception-v3': 'InceptionV3' }

/** Finds the models, and converts those that are missing from the package nsfwjs. */
export async function openModels({ dirs, names, precision, log, onEscape }: Deps): Promise<Model[]> {
  const manifest = await readManifest()
  const encoding = precision === 'fp32' ? 'fp32' : await chooseInt8()
  const models: Model[] = []
  for (const name of names) {
    const wanted = getModelFile(manifest, name, encoding)
    const path = (await findModel(wanted, dirs, log)) ?? (await buildModel(wanted, { dirs, log, onEscape }))
    const form = shippedForms[name]
    models.push({ name, title: titles[name], path, sha256: wanted.sha256, isOwn: false, form })
  }
  return models
}

async function findModel(wanted: ModelFile, dirs: string[], log: Logger): Promise<string | undefined> {
  for (const dir of dirs) {
    const path = resolve(dir, wanted.file)
    const found = await stat(path).catch(() => undefined)
    if (found === undefined) continue
    if (found.size === wanted.bytes && (await findChecksum(path))?.sha256 === wanted.sha256) return path
    log.warn({ path }, 'a model file does not match the manifest and is not used')
  }
  return undefined
}

async function buildModel(
  wanted: ModelFile,
  { dirs, log, onEscape }: Pick<Deps, 'dirs' | 'log' | 'onEscape'>,
): Promise<string> {
  const { name, encoding, file } = wanted
  const remedy = `Run \`npm run models\` where nsfwjs is installed, or copy ${file} into ASSAY_MODEL_DIR`
  const places = dirs.map((dir) => resolve(dir)).join(', ')
  if (findSourceRoot() === undefined) {
    throw new Error(`The model ${file} is not in ${places}, and nsfwjs is not installed to convert it from. ${remedy}.`)
  }
  const dir = await findWritable(dirs)
  if (dir === undefined)
    throw new Error(`The model ${file} is not in ${places}, and none of these directories is writable. ${remedy}.`)
  const path = join(dir, file)
  log.info({ file, dir }, 'converting an image model of nsfwjs; this takes seconds and happens once')
  const startedAt = performance.now()
  // Another process may convert the same model: each writes to a name of its own, and both rename the same bytes.
  const unfinished = join(dir, `.${file}.${randomUUID()}`)
  try {
    await convertInChild(name, encoding, unfinished, onEscape)
    const made = await findChecksum(unfinished)
    if (made?.sha256 !== wanted.sha256) {
      throw new Error(
        `The ${file} converted from nsfwjs does not match the manifest: is another version installed? ${remedy}.`,
      )
    }
    await rename(unfinished, path)
  } finally {
    await rm(unfinished, { force: true })
  }
  log.info({ file, ms: Math.round(performance.now() - startedAt) }, 'converted an image model')
  return path
}

async function findWritable(dirs: string[]): Promise<string | undefined> {
  for (const dir of dirs.map((dir) => resolve(dir))) {
    try {
      // A recursive mkdir below /proc would never return.
      const isMade = await mkdir(dir).then(
        () => true,
        () => false,
      )
      // Processes of another user read the directory, so its mode must not depend on the umask.
      if (isMade) await chmod(dir, 0o755)
      await access(dir, constants.W_OK | constants.X_OK)
      return dir
    } catch {}
  }
  return undefined
}

const program = fileURLToPath(new URL('child/main.ts', import.meta.url))
/** Time limit of a conversion: a hundred times its usual duration. */
const convertMs = 300_000

/**
 * Writes a model file, in a process of its own: converting computes for seconds and leaves some hundred megabytes
 * behind. The process writes to a file that is already open, so it needs no right on the directory.
 */
export async function convertInChild(
  name: ModelName,
  encoding: Encoding,
  path: string,
  onEscape?: OnEscape,
): Promise<void> {
  const file = await open(path, 'wx', 0o644)
  try {
    await runConversion([name, encoding], file.fd, onEscape)
    // Processes of another user read the file, so its mode must not depend on the umask.
    await file.chmod(0o644)
  } finally {
    await file.close()
  }
}

async function runConversion(args: string[], output: number, onEscape: OnEscape | undefined) {
  const sourceRoot = findSourceRoot()
  const launch = toConversionLaunch(program, sourceRoot === undefined ? args : [...args, realpathSync(sourceRoot)])
  const child = spawn(launch.command, launch.args, {
    cwd: '/',
    env: { PATH: process.env.PATH },
    stdio: ['ignore', output, 'pipe'],
    timeout: convertMs,
  })
  const [[code, signal], message] = await Promise.all([once(child, 'close'), child.stderr ? text(child.stderr) : ''])
  if (isEscape(signal)) onEscape?.('modelConversion')
  if (code !== 0)
    throw new Error(`The conversion of a model ended with ${signal ?? code}. ${message.slice(-2000)}`.trim())
}

/** The command that runs a program as the conversion of models. */
export const toConversionLaunch = (program: string, args: string[]) =>
  toNodeLaunch({
    name: 'model conversion',
    program,
    args,
    toPolicy: policies.modelConversion,
    readableDirs: [dirname(import.meta.dirname), modelsDir, ...[findSourceRoot() ?? []].flat()],
    maxHeapMb: 2048,
    allowsAddons: false,
    hasSocket: false,
  })

/**
 * Chooses between signed and unsigned bytes for this processor. Signed weights take a third to half of the time, but on
 * x64 without VNNI onnxruntime sums their products in 16 bits, which overflow and silently give wrong scores.
 */
export async function chooseInt8(): Promise<'int8' | 'uint8'> {
  if (process.arch !== 'x64') return 'int8'
  const cpus = await readFile('/proc/cpuinfo', 'utf8').catch(() => '')
  return hasVnni(cpus) ? 'int8' : 'uint8'
}

/** Requires VNNI of all processors, because the kernel may move the process from one to another. */
export function hasVnni(cpuinfo: string): boolean {
  const flags = [...cpuinfo.matchAll(/^flags\s*:(.*)$/gm)].map(([, list = '']) => list.split(/\s+/))
  return flags.length > 0 && flags.every((list) => list.includes('avx512_vnni') || list.includes('avx_vnni'))
}
