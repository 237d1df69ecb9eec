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

/** TypeScript declares WebAssembly with the browser's types, which this project does not load. */
declare const WebAssembly: { Module: new (bytes: Uint8Array) => object }

/**
 * Compiles a library of the installation, without tiers, which also applies to all WebAssembly that is compiled later.
 * V8 validates each function of the library before its first call instead of all of them now, which takes 6 ms instead
 * of 45 for YARA-X. A library with an invalid function ends the process when it calls the function.
 */
export function compileLibrary(bytes: Uint8Array): object {
  setFlagsFromString(tieringFlag)
  setFlagsFromString('--wasm-lazy-validation')
  try {
    return new WebAssembly.Module(bytes)
  } finally {
    // Other modules, such as those that YARA-X makes of rules, are still refused as a whole.
    setFlagsFromString('--no-wasm-lazy-validation')
  }
}

let gc: (() => void) | undefined

/** Frees all garbage now, with the memory of buffers that only garbage refers to. */
export function collectGarbage() {
  if (gc === undefined) {
    setFlagsFromString('--expose-gc')
    gc = runInNewContext('gc') as () => void
  }
  gc()
}
