import { constants, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { compileLibrary } from '../../child-process/late-flags.ts'
import type { Pipe } from './members.ts'
import { isPadding, type Reading } from './reader.ts'
import { listDoubts, readMessages } from './seven-zip-messages.ts'
import type { Source } from './source.ts'
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
