/**
 * Removes the types of TypeScript sources and writes the JavaScript to a file: `strip-types.cjs TARGET`, with the sources
 * as a JSON object by URL on standard input. A program of its own, because Node prints a warning about the function.
 */
const { readFileSync, renameSync, writeFileSync } = require('node:fs')
const { stripTypeScriptTypes } = require('node:module')

const [target] = process.argv.slice(2)
const sources = Object.entries(JSON.parse(readFileSync(0, 'utf8')))
const stripped = Object.fromEntries(sources.map(([url, source]) => [url, stripTypeScriptTypes(source)]))
const part = `${target}.${process.pid}`
// Parsers of another user read the file, so its mode must not depend on the umask.
process.umask(0o022)
writeFileSync(part, JSON.stringify(stripped), { flag: 'wx' })
renameSync(part, target)
