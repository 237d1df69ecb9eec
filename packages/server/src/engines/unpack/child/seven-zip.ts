import { constants, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Doubt } from '../../../domain/ports/engines.ts'
import { compileLibrary } from '../../child-process/late-flags.ts'
import type { Pipe } from './members.ts'
import { isPadding, type Range, type Reading, type Source } from './reader.ts'
import { type EmscriptenFs, mountStreams } from './streamed-fs.ts'

/**
 * Enough for a dictionary of 256 MB and its tables; containers may claim up to 4 GB. A container that needs more fails
 * as on a machine without memory.
 */
const maxHeapBytes = 640 * 2 ** 20

type WasmInstance = { exports: object }
/** TypeScript declares WebAssembly with the browser's types, which this project does not load. */
declare const WebAssembly: { Instance: new (program: object, imports: object) => WasmInstance }

type Instance = { FS: EmscriptenFs; callMain(args: string[]): number }
type Imports = { env: Record<string, (...args: never[]) => unknown> }
type Start = (options: {
  print(line: string): void
  printErr(line: string): void
  instantiateWasm(imports: Imports, done: (instance: WasmInstance) => void): object
}) => Promise<Instance>

/**
 * Loads and compiles 7-Zip once. Each container gets an instance of its own (2 ms), because an instance that crashed
 * cannot be used again.
 */
export function loadSevenZip() {
  // The library looks up an internal module of Node for real files, which are not used and not permitted here.
  Object.assign(process, { binding: () => ({ fs: constants }) })
  // An import would load the JavaScript of the library into every process, most of which never run it.
  const start: Start = createRequire(import.meta.url)('7z-wasm')
  const program = compileLibrary(readFileSync(fileURLToPath(import.meta.resolve('7z-wasm/7zz.wasm'))))

  return {
    /** Gives the members of a container of the format that 7-Zip calls `type`. */
    async read(source: Source, type: string, pipe: Pipe): Promise<Reading> {
      const messages = readMessages(source.bytes)
      const instance = await start({
        print: messages.onOutput,
        printErr: messages.onError,
        instantiateWasm(imports, done) {
          limitHeap(imports)
          const made = new WebAssembly.Instance(program, imports)
          done(made)
          return made.exports
        },
      })
      const members = mountStreams(instance.FS, source, pipe)
      let code: number
      try {
        code = instance.callMain(['x', members.container, `-o${members.folder}`, ...switches, `-t${type}`])
      } catch (error) {
        // This build of 7-Zip cannot catch exceptions of C++: they end the program, as a number or a trap.
        code = -1
        messages.onError(`Crashed: ${String(error)}`)
      }
      members.finish()
      const report = { code, ...messages.get(), ...members.get() }
      const tail = { start: report.physical.end, end: source.bytes }
      const hasTail = tail.start < tail.end && !isPadding(source, tail)
      const doubts = listDoubts(report, { type, hasTail })
      const isOpened = report.members > 0 || doubts.length === 0
      return { accounted: isOpened ? [report.physical] : [], doubts, givenBytes: report.givenBytes }
    },
  }
}

/**
 * The switches answer yes to all questions, give a password so that 7-Zip asks for none, and disable links and
 * progress.
 */
const switches = ['-y', '-passay', '-snl-', '-bsp0']

function limitHeap({ env }: Imports) {
  const grow = env.emscripten_resize_heap as (bytes: number) => unknown
  env.emscripten_resize_heap = (bytes: number) => (bytes >>> 0 > maxHeapBytes ? 0 : grow(bytes))
}

const maxComplaints = 50
const maxComplaintLength = 300

/** The report of 7-Zip about one run. */
type SevenZipReport = {
  /** The exit code; -1 when 7-Zip crashed. */
  code: number
  /** Errors and warnings, cut to a bounded length. */
  complaints: string[]
  /** The number of complaints about links and attributes, which have no bytes. */
  ignored: number
  members: number
  /** The container within the file; the whole file when 7-Zip does not tell. */
  physical: Range
  /** A member was not written from front to back, so the bytes that were sent are not its content. */
  rewritten: boolean
}

/**
 * Reads the messages of 7-Zip. It prints errors line by line and reflects them in its exit code; it prints warnings
 * only within its listing of the container, and exits with success.
 */
function readMessages(contentBytes: number) {
  const complaints: string[] = []
  const properties = new Map<string, number>()
  let ignored = 0
  let isWarning = false

  function onError(line: string) {
    if (isHarmless(line)) ignored++
    else if (line !== '' && complaints.length < maxComplaints) complaints.push(line.slice(0, maxComplaintLength))
  }

  return {
    onError,
    onOutput(line: string) {
      const [, name, value] = /^(Offset|Physical Size|Tail Size) = (\d+)$/.exec(line) ?? []
      // 7-Zip lists the outermost container first: the file that it was given.
      if (name !== undefined && !properties.has(name)) properties.set(name, Number(value))
      else if (/^WARNINGS?:/.test(line)) isWarning = true
      else if (line === '--' || line.includes(' = ')) isWarning = false
      else if (isWarning && !line.startsWith('There are data after the end')) onError(line)
    },
    get: () => ({ complaints, ignored, physical: toRange(properties, contentBytes) }),
  }
}

function toRange(properties: Map<string, number>, contentBytes: number): Range {
  const start = properties.get('Offset') ?? 0
  const bytes = properties.get('Physical Size') ?? contentBytes - start
  const end = contentBytes - (properties.get('Tail Size') ?? 0)
  return { start: Math.min(start, contentBytes), end: Math.min(start + bytes, end, contentBytes) }
}

/** Links and folders have no bytes, and the folder of the members keeps neither attributes nor folders. */
const isHarmless = (line: string) =>
  /^ERROR: (?:Cannot create (?:folder|hard link|symbolic link)|Dangerous link|Cannot set file attribute)/.test(line)

const fatalErrorCode = 2
const outOfMemoryCode = 8

/** The reasons why the report does not mean that every member was given whole. */
function listDoubts(report: SevenZipReport, { type, hasTail }: { type: string; hasTail: boolean }): Doubt[] {
  const { code, complaints, ignored, rewritten, members } = report
  const doubts = new Set<Doubt>()
  if (complaints.some((line) => encryption.test(line))) doubts.add('EncryptedContent')
  if (code === outOfMemoryCode || complaints.some((line) => memory.test(line))) doubts.add('ScanLimitExceeded')
  const isExplained = doubts.size > 0 || (code === fatalErrorCode && complaints.length === 0 && ignored > 0)
  // A container may hold an encrypted member and a broken one: both are reported.
  const hasOther = complaints.some((line) => !encryption.test(line) && !memory.test(line) && !heading.test(line))
  const mayHideInTail = hasTail && (members === 0 || sequentialFormats.has(type))
  if (rewritten || hasOther || mayHideInTail || (code !== 0 && !isExplained)) doubts.add('UnsupportedContainer')
  return [...doubts]
}

const encryption = /encrypted|wrong password/i
const memory = /allocate|enough memory/i
/** Begins a list of complaints, or names the container. */
const heading = /^(?:ERRORS?|WARNINGS?):\s*(?:\/content)?$/

/** Formats without a directory. 7-Zip takes a broken member for the end of the container, and reports success. */
const sequentialFormats = new Set(['rar', 'rar5', 'cpio', 'ar', 'arj', 'lzh'])
