/**
 * Gives Node the JavaScript of modules that stripped-sources.ts has prepared. Loaded before the program of a child
 * process. Without the file, or for modules that it lacks, Node removes the types itself.
 */
const { readFileSync } = require('node:fs')
const { registerHooks } = require('node:module')

// The permission to read the file tells its name: arguments belong to the program, and it gets no environment.
const [path] = process.execArgv
  .map((flag) => flag.split('=')[1] ?? '')
  .filter((value) => value.endsWith('.stripped.json'))
const sources = read(path)

registerHooks({
  load(url, context, loadNext) {
    const source = sources[url]
    if (source === undefined) return loadNext(url, context)
    return { format: 'module', source, shortCircuit: true }
  },
})

function read(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return {}
  }
}
