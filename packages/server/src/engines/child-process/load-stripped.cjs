/**
 * Gives Node the JavaScript of modules that stripped-sources.ts has prepared. Loaded before the program of a child
 * process. Without the file, or for modules that it lacks, Node removes the types itself.
 */
const { readFileSync } = require('node:fs')
const { registerHooks } = require('node:module')

// The permission to read the file tells its name: arguments belong to the program, and it gets no environment.
const [path] = process.execArgv.map((flag) => flag.split('=')[1] ?? '').filter((value) => value.endsWith('.stripped'))
const sources = read(path)

registerHooks({
  // The prepared modules name each other by relative paths. Node would look for each of these files, which takes a
  // third of the time that an unpacking process needs to load its modules.
  resolve(specifier, context, resolveNext) {
    const url = specifier.startsWith('.') ? new URL(specifier, context.parentURL).href : specifier
    if (sources.has(url)) return { url, format: 'module', shortCircuit: true }
    return resolveNext(specifier, context)
  },
  load(url, context, loadNext) {
    const getText = sources.get(url)
    if (getText === undefined) return loadNext(url, context)
    return { format: 'module', source: getText(), shortCircuit: true }
  },
})

/** The sources by URL. The file starts with a line of their URLs and lengths; each text is decoded when it is used. */
function read(path) {
  const found = new Map()
  try {
    const file = readFileSync(path)
    let end = file.indexOf('\n') + 1
    for (const [url, bytes] of JSON.parse(file.toString('utf8', 0, end))) {
      const start = end
      end += bytes
      found.set(url, () => file.toString('utf8', start, start + bytes))
    }
    return end === file.length ? found : new Map()
  } catch {
    return new Map()
  }
}
