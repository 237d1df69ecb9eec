import { execFile } from 'node:child_process'
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { extractors } from './extractors.ts'
import type { Extractor } from './form.ts'
import { findTool } from './tools.ts'

/** Nested samples are unpacked by the same program, layer by layer. */
const maxDepth = 7
const maxFiles = 30
const maxFileBytes = 2 ** 25

/** Lists the extractors that are installed, for a form that names special ones. */
const listExtractors = (special: readonly string[] = []): Extractor[] =>
  extractors.filter(
    ({ name, program, isSpecial }) => findTool(program) !== undefined && (isSpecial !== true || special.includes(name)),
  )

type Options = {
  /** Special extractors to try as well. */
  special?: readonly string[] | undefined
  isFirstEnough?: boolean
  /** Other bytes in front of the payload or behind it make it something else, as the definition of EICAR says. */
  isExact?: boolean
}

type Wanted = { payload: Buffer; isExact: boolean }

/** Returns the names of the programs that get the payload out of the sample, or only the first one found. */
export async function listExtracting(
  sample: { name: string; bytes: Buffer },
  payload: Buffer,
  { special = [], isFirstEnough = false, isExact = false }: Options = {},
): Promise<string[]> {
  const directory = mkdtempSync(join(tmpdir(), 'assay-extract-'))
  try {
    const found: string[] = []
    for (const extractor of listExtractors(special)) {
      found.push(...(await findReaders(extractor, sample, { payload, isExact }, directory)))
      if (isFirstEnough && found.length > 0) break
    }
    return found
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

async function findReaders(
  extractor: Extractor,
  sample: { name: string; bytes: Buffer },
  wanted: Wanted,
  directory: string,
): Promise<string[]> {
  const outputs = await unpack(extractor, sample.name, sample.bytes, directory)
  const readers = new Set<string>()
  for (const output of outputs) {
    const reader = extractor.hasReaders ? `${extractor.name} ${output.path.split('/')[0]}` : extractor.name
    if (!readers.has(reader) && (await contains(extractor, output, wanted, directory, 1))) readers.add(reader)
  }
  return [...readers]
}

type Output = { path: string; bytes: Buffer }

async function contains(
  extractor: Extractor,
  output: Output,
  wanted: Wanted,
  directory: string,
  depth: number,
): Promise<boolean> {
  if (isPayload(output.bytes, wanted)) return true
  const next = extractors.find(({ name }) => name === extractor.inner) ?? extractor
  if (depth < maxDepth && (next.isSpecial === true || !isText(output.bytes)))
    for (const inner of await unpack(next, basename(output.path), output.bytes, directory))
      if (await contains(next, inner, wanted, directory, depth + 1)) return true
  return false
}

function isPayload(bytes: Buffer, { payload, isExact }: Wanted): boolean {
  // Decoders of text may add a line end. A longer output is a container that holds the payload uncompressed.
  if (bytes.length > payload.length + 8) return false
  return isExact ? withoutBlanks(bytes).equals(withoutBlanks(payload)) : bytes.includes(withoutBlanks(payload))
}

/** Unpacks one layer. An output that equals the input would be unpacked forever, so it is left out. */
async function unpack(extractor: Extractor, name: string, bytes: Buffer, directory: string): Promise<Output[]> {
  if (bytes.length < 24) return []
  const base = mkdtempSync(join(directory, 'layer-'))
  const file = join(base, name.replaceAll('/', '_').slice(-80))
  const cwd = join(base, 'out')
  mkdirSync(cwd)
  writeFileSync(file, bytes)
  try {
    const printed = await runExtractor(extractor, file, bytes, cwd)
    const outputs = [
      ...(extractor.printsContent ? [{ path: name.replace(/\.[^.]*$/, ''), bytes: printed }] : []),
      ...readOutputs(Buffer.from(cwd)),
    ]
    return outputs.filter((output) => output.bytes.length > 0 && !output.bytes.equals(bytes)).slice(0, maxFiles)
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
}

/** Exit codes do not count: many programs complain and extract nevertheless. */
function runExtractor(extractor: Extractor, file: string, bytes: Buffer, cwd: string): Promise<Buffer> {
  return new Promise((resolve) => {
    const options = {
      cwd,
      encoding: 'buffer',
      timeout: 20_000,
      killSignal: 'SIGKILL',
      maxBuffer: maxFileBytes,
      env: { ...process.env, LC_ALL: 'C.UTF-8', HOME: cwd },
    } as const
    const program = findTool(extractor.program) ?? extractor.program
    const child = execFile(program, extractor.args(file), options, (_error, stdout) => resolve(stdout))
    // The program may end before it has read its input.
    child.stdin?.on('error', () => {})
    child.stdin?.end(extractor.isFed ? bytes : Buffer.alloc(0))
  })
}

/** Reads the regular files below a directory. Names need not be valid UTF-8, so that paths are bytes. */
function readOutputs(directory: Buffer, parent = ''): Output[] {
  return readdirSync(directory, { encoding: 'buffer' }).flatMap((name) => {
    const path = Buffer.concat([directory, Buffer.from('/'), name])
    const shown = `${parent}${name.toString('latin1')}`
    const status = lstatSync(path)
    if (status.isDirectory()) return readOutputs(path, `${shown}/`)
    return status.isFile() && status.size <= maxFileBytes ? [{ path: shown, bytes: readFileSync(path) }] : []
  })
}

/** A signature of text does not cover blanks at the end of its lines, and gpg removes them. */
const withoutBlanks = (payload: Buffer) => Buffer.from(payload.toString('latin1').trimEnd(), 'latin1')

/** Plain text inside a container is not unpacked further, which saves most of the processes. */
const isText = (bytes: Buffer) => bytes.subarray(0, 4096).every((byte) => byte > 8 && byte < 128)
