/**
 * Removes the types of TypeScript sources and writes the JavaScript to a file: `strip-types.cjs TARGET`, with the sources
 * as a JSON object by URL on standard input. A program of its own, because Node prints a warning about the function.
 */
const { readFileSync, renameSync, writeFileSync } = require('node:fs')
const { stripTypeScriptTypes } = require('node:module')

const [target] = process.argv.slice(2)
const sources = Object.entries(JSON.parse(readFileSync(0, 'utf8')))
const stripped = sources.map(([url, source]) => [url, stripTypeScriptTypes(source)])
// A first line of URLs and lengths, because a child uses half of the texts and should not parse the others.
const index = JSON.stringify(stripped.map(([url, text]) => [url, Buffer.byteLength(text)]))
const part = `${target}.${process.pid}`
// Parsers of another user read the file, so its mode must not depend on the umask.
process.umask(0o022)
writeFileSync(part, [`${index}\n`, ...stripped.map(([, text]) => text)].join(''), { flag: 'wx' })
renameSync(part, target)
