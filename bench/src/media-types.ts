import { execFileSync } from 'node:child_process'
import { accessSync, constants, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { extname, join } from 'node:path'
import { fileTypeFromBuffer } from 'file-type'
import { headBytes } from '../../packages/server/src/domain/content/content.ts'
import { findMediaType } from '../../packages/server/src/domain/content/media-type.ts'
import type { Row } from './results.ts'

/**
 * How often detection agrees with file(1) on the files of this system, and its duration. Other libraries join when
 * ASSAY_BENCH_CANDIDATES names a folder in which they are installed; they are not dependencies of Assay. 908 files of a
 * Debian 12, file 5.44, Node 24.21, 2 cores, all in one run (main type, full type, time per file):
 *
 *     Assay             99.2 %  96.4 %    69 µs
 *     file-type 22.3    57.6 %  23.3 %    72 µs   knows hardly any text
 *     mime-kind 4.0     57.4 %  23.1 %    75 µs   an older file-type
 *     magic-bytes 1.13  56.3 %  26.1 %     3 µs   knows hardly any text
 *     detect-file 0.2   59.9 %  29.7 %  7135 µs
 *     wasmagic 1.0      97.4 %  91.4 %  1202 µs   libmagic itself, on the same heads
 */
export async function benchMediaTypes(): Promise<Row[]> {
  const samples = readSamples()
  if (samples === undefined) return [newRow('media types', 'not measured', 'file(1): apt-get install file', undefined)]
  const measured: Measured[] = []
  for (const candidate of await loadCandidates()) measured.push(await measure(candidate, samples))
  const [ours, ...others] = measured as [Measured, ...Measured[]]
  return others.flatMap((other) => [
    newRow(
      `media type of ${samples.length} files as file(1), main part`,
      toPercent(ours.main),
      `${other.name}: ${toPercent(other.main)}`,
      ours.main / other.main,
    ),
    newRow(
      `media type of ${samples.length} files as file(1), full`,
      toPercent(ours.full),
      `${other.name}: ${toPercent(other.full)}`,
      ours.full / other.full,
    ),
    {
      ...newRow(
        'media type, time for each file',
        `${ours.us.toFixed(1)} µs`,
        `${other.name}: ${other.us.toFixed(1)} µs`,
        ours.us / other.us,
      ),
      wanted: 'at most 150 µs',
    },
  ])
}

type Sample = { path: string; type: string; head: Buffer; bytes: number }
type Candidate = { name: string; find(head: Buffer, bytes: number): Promise<string> }
type Measured = { name: string; main: number; full: number; us: number }

const newRow = (what: string, ours: string, against: string, ratio: number | undefined): Row => ({
  what,
  ours,
  against,
  ratio,
  wanted: 'ours at least 95 %',
})

const toPercent = (share: number) => `${(100 * share).toFixed(1)} %`

const roots = ['/usr/lib', '/usr/share', '/usr/bin', '/etc']
const perExtension = 12
const perType = 40
const rounds = 3

/** Spreads the sample over extensions, then over types: most files of a system are manual pages and Python. */
function readSamples(): Sample[] | undefined {
  const paths = spread(roots.flatMap(listFiles).toSorted(), toExtension, perExtension)
  const types = runFileCommand(paths)
  if (types === undefined) return undefined
  const known = paths
    .map((path, i) => ({ path, type: types[i] ?? '' }))
    .filter(({ type }) => /^\w+\/[\w.+-]+$/.test(type))
  return spread(
    known.filter(({ type }) => !type.startsWith('inode/')),
    ({ type }) => type,
    perType,
  ).map(({ path, type }) => {
    const content = readFileSync(path)
    return { path, type, head: Buffer.from(content.subarray(0, headBytes)), bytes: content.length }
  })
}

/** Lists files folder by folder, because the recursive option of readdirSync needs minutes for this many. */
function listFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return canRead(path) ? listFiles(path) : []
    return entry.isFile() && !entry.name.includes('\n') && canRead(path) ? [path] : []
  })
}

function canRead(path: string): boolean {
  try {
    accessSync(path, constants.R_OK)
    return true
  } catch {
    return false
  }
}

/** Groups programs, which have no extension, by their folder. */
const toExtension = (path: string) => extname(path).toLowerCase() || path.split('/').slice(0, 4).join('/')

/** Takes at most `most` of each group at even distances, the same in every run. */
function spread<T>(items: T[], toGroup: (item: T) => string, most: number): T[] {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const group = groups.get(toGroup(item))
    if (group === undefined) groups.set(toGroup(item), [item])
    else group.push(item)
  }
  return [...groups.values()].flatMap((group) => {
    const step = Math.max(1, group.length / most)
    return Array.from({ length: Math.min(most, group.length) }, (_, i) => group[Math.floor(i * step)] as T)
  })
}

function runFileCommand(paths: string[]): string[] | undefined {
  try {
    const options = { input: `${paths.join('\n')}\n`, encoding: 'utf8', maxBuffer: 1 << 26 } as const
    return execFileSync('file', ['--brief', '--mime-type', '--files-from', '-'], options).split('\n')
  } catch {
    return undefined
  }
}

async function loadCandidates(): Promise<Candidate[]> {
  const candidates: Candidate[] = [
    { name: 'Assay', find: findMediaType },
    { name: 'file-type', find: async (head) => (await fileTypeFromBuffer(head))?.mime ?? '' },
  ]
  const folder = process.env.ASSAY_BENCH_CANDIDATES
  if (folder === undefined) return candidates
  const load = createRequire(join(folder, 'package.json'))
  const { filetypemime } = load('magic-bytes.js') as { filetypemime(head: Buffer): string[] }
  const { WASMagic } = load('wasmagic') as { WASMagic: { create(): Promise<{ detect(head: Buffer): string }> } }
  const detector = load('detect-file-type') as {
    fromBuffer(head: Buffer, done: (error: unknown, found: { mime: string } | null) => void): void
  }
  const kinds = load('mime-kind') as { async(head: Buffer): Promise<{ mime: string } | undefined> }
  const magic = await WASMagic.create()
  return [
    ...candidates,
    { name: 'magic-bytes.js', find: async (head) => filetypemime(head)[0] ?? '' },
    { name: 'wasmagic', find: async (head) => magic.detect(head) },
    {
      name: 'detect-file-type',
      find: (head) => new Promise((resolve) => detector.fromBuffer(head, (_, found) => resolve(found?.mime ?? ''))),
    },
    { name: 'mime-kind', find: async (head) => (await kinds.async(head))?.mime ?? '' },
  ]
}

async function measure({ name, find }: Candidate, samples: Sample[]): Promise<Measured> {
  const found: string[] = []
  // A library that throws has found no type.
  const ask = async ({ head, bytes }: Sample) => toName(await find(head, bytes).catch(() => ''))
  for (const sample of samples) found.push(await ask(sample))
  const start = performance.now()
  for (let round = 0; round < rounds; round++) for (const sample of samples) await ask(sample)
  const us = ((performance.now() - start) * 1000) / (rounds * samples.length)
  const share = (isSame: (a: string, b: string) => boolean) =>
    samples.filter(({ type }, i) => isSame(found[i] as string, toName(type))).length / samples.length
  return { name, us, full: share((a, b) => a === b), main: share((a, b) => a.split('/')[0] === b.split('/')[0]) }
}

/** Unifies names of the same type, and treats no result as unknown binary, so that no library loses by its spelling. */
const toName = (type: string) => {
  const name = (type.split(';')[0] ?? '').trim().toLowerCase() || 'application/octet-stream'
  return aliases[name] ?? name
}

const aliases: Record<string, string> = {
  'application/font-sfnt': 'font/sfnt',
  'application/java-vm': 'application/x-java-applet',
  'application/rtf': 'text/rtf',
  'application/x-bzip': 'application/x-bzip2',
  'application/x-cfb': 'application/x-ole-storage',
  'application/x-gzip': 'application/gzip',
  'application/x-msdownload': 'application/vnd.microsoft.portable-executable',
  'application/x-unix-archive': 'application/x-archive',
  'application/x-xml': 'text/xml',
  'application/xml': 'text/xml',
  'font/otf': 'font/sfnt',
  'font/ttf': 'font/sfnt',
  'image/x-icon': 'image/vnd.microsoft.icon',
  'text/javascript': 'application/javascript',
}
