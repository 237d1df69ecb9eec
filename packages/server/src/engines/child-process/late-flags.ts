import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/*
 * Flags of V8 that child processes set when they need them. On the command line, a flag that concerns code makes Node
 * compile its own modules at each start instead of reading them compiled, which is an eighth of the start of a child.
 */

/**
 * V8 would compile functions of WebAssembly a second time for speed, which takes longer than most contents. Functions
 * that run for long, as in 7-Zip, still get it.
 */
export const tieringFlag = '--wasm-tiering-budget=1000000000'

/** Applies to WebAssembly that is compiled afterwards. */
export const delayTiering = () => setFlagsFromString(tieringFlag)

let gc: (() => void) | undefined

/** Frees all garbage now, with the memory of buffers that only garbage refers to. */
export function collectGarbage() {
  if (gc === undefined) {
    setFlagsFromString('--expose-gc')
    gc = runInNewContext('gc') as () => void
  }
  gc()
}
