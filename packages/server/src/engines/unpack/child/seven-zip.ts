import { constants, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import start from '7z-wasm'
import type { Job, JobEnd } from '../frames.ts'
import { listen } from './complaints.ts'
import { makeContainerFile } from './container-file.ts'
import type { ServicePipe } from './service-pipe.ts'
import { type EmscriptenFs, mountStreams } from './streamed-fs.ts'

/**
 * Enough for a dictionary of 256 MB and its tables; containers may claim up to 4 GB. What needs more fails like a
 * machine without memory.
 */
const maxHeapBytes = 640 * 2 ** 20

type WasmInstance = { exports: object }
/** Our libraries for types leave the browser out, and this with it. */
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
 * 7-Zip, compiled once (20 ms). Each container gets an instance of its own (2 ms), because one that broke off is left
 * in no state to go on.
 */
export function loadSevenZip() {
  // The library prepares access to real files, which is never used, with an inner part of Node that is closed here.
  Object.assign(process, { binding: () => ({ fs: constants }) })
  const program = new WebAssembly.Module(readFileSync(fileURLToPath(import.meta.resolve('7z-wasm/7zz.wasm'))))

  return {
    async unpack(job: Job, service: ServicePipe): Promise<Omit<JobEnd, 'residentBytes'>> {
      const heard = listen()
      const instance = await (start as unknown as Start)({
        print: heard.onOutput,
        printErr: heard.onError,
        instantiateWasm(imports, done) {
          limitHeap(imports)
          const made = new WebAssembly.Instance(program, imports)
          done(made)
          return made.exports
        },
      })
      const members = mountStreams(instance.FS, makeContainerFile(job.bytes, service), job.name, service)
      const type = job.type === undefined ? [] : [`-t${job.type}`]
      let code: number
      try {
        code = instance.callMain(['x', members.container, `-o${members.folder}`, ...switches, ...type])
      } catch (error) {
        // This build cannot catch the exceptions of C++: they end the program, as a number or a trap.
        code = -1
        heard.onError(`Broke off: ${String(error)}`)
      }
      members.finish()
      return { code, ...heard.tell(), ...members.tell() }
    },
  }
}

/** Yes to all; a password, so that it asks for none; no symbolic links; no progress. */
const switches = ['-y', '-passay', '-snl-', '-bsp0']

function limitHeap({ env }: Imports) {
  const grow = env.emscripten_resize_heap as (bytes: number) => unknown
  env.emscripten_resize_heap = (bytes: number) => (bytes >>> 0 > maxHeapBytes ? 0 : grow(bytes))
}
