import { constants, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import start from '7z-wasm'
import type { Job, JobAnswer } from '../unpack-job.ts'
import { type EmscriptenFs, mountStreams, type Pipe } from './streamed-fs.ts'

/**
 * Enough for a dictionary of 256 MB and its tables; containers may claim up to 4 GB. A container that needs more fails
 * as on a machine without memory.
 */
const maxHeapBytes = 640 * 2 ** 20

type WasmInstance = { exports: object }
/** TypeScript declares WebAssembly with the browser's types, which this project does not load. */
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object
  Instance: new (program: object, imports: object) => WasmInstance
}

type Instance = { FS: EmscriptenFs; callMain(args: string[]): number }
type Imports = { env: Record<string, (...args: never[]) => unknown> }
type Start = (options: {
  print(line: string): void
  printErr(line: string): void
  instantiateWasm(imports: Imports, done: (instance: WasmInstance) => void): object
}) => Promise<Instance>

/**
 * Compiles 7-Zip once (20 ms). Each container gets an instance of its own (2 ms), because an instance that crashed
 * cannot be used again.
 */
export function loadSevenZip() {
  // The library looks up an internal module of Node for real files, which are not used and not permitted here.
  Object.assign(process, { binding: () => ({ fs: constants }) })
  const program = new WebAssembly.Module(readFileSync(fileURLToPath(import.meta.resolve('7z-wasm/7zz.wasm'))))

  return {
    async unpack(job: Job, pipe: Pipe): Promise<Omit<JobAnswer, 'needsReplacement'>> {
      const messages = readMessages()
      const instance = await (start as unknown as Start)({
        print: messages.onOutput,
        printErr: messages.onError,
        instantiateWasm(imports, done) {
          limitHeap(imports)
          const made = new WebAssembly.Instance(program, imports)
          done(made)
          return made.exports
        },
      })
      const members = mountStreams(instance.FS, job, pipe)
      const type = job.type === undefined ? [] : [`-t${job.type}`]
      let code: number
      try {
        code = instance.callMain(['x', members.container, `-o${members.folder}`, ...switches, ...type])
      } catch (error) {
        // This build of 7-Zip cannot catch exceptions of C++: they end the program, as a number or a trap.
        code = -1
        messages.onError(`Crashed: ${String(error)}`)
      }
      members.finish()
      return { code, ...messages.get(), ...members.get() }
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

/**
 * Reads the messages of 7-Zip. It prints errors line by line and reflects them in its exit code; it prints warnings
 * only within its listing of the container, and exits with success.
 */
function readMessages() {
  const complaints: string[] = []
  let ignored = 0
  let tailBytes = 0
  let isWarning = false

  function onError(line: string) {
    if (isHarmless(line)) ignored++
    else if (line !== '' && complaints.length < maxComplaints) complaints.push(line.slice(0, maxComplaintLength))
  }

  return {
    onError,
    onOutput(line: string) {
      const [, tail] = /^Tail Size = (\d+)$/.exec(line) ?? []
      if (tail !== undefined) tailBytes = Number(tail)
      else if (/^WARNINGS?:/.test(line)) isWarning = true
      else if (line === '--' || line.includes(' = ')) isWarning = false
      else if (isWarning && line.startsWith('There are data after the end')) tailBytes = Math.max(1, tailBytes)
      else if (isWarning) onError(line)
    },
    get: () => ({ complaints, ignored, tailBytes }),
  }
}

/** Links and folders have no bytes, and the folder of the members keeps neither attributes nor folders. */
const isHarmless = (line: string) =>
  /^ERROR: (?:Cannot create (?:folder|hard link|symbolic link)|Dangerous link|Cannot set file attribute)/.test(line)
