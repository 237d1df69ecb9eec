import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { findStrippedSources, loadProgram } from '../../src/engines/child-process/node-launch.ts'

const dir = mkdtempSync(join(tmpdir(), 'assay-stripped-'))
after(() => rmSync(dir, { recursive: true, force: true }))

const sources = mkdtempSync(join(dir, 'sources-'))
const cache = join(dir, 'cache')
const main = join(sources, 'main.ts')
const value = join(sources, 'value.ts')
writeFileSync(join(sources, 'package.json'), '{"type":"module"}')
writeFileSync(main, "import { value } from './value.ts'\nconst text: string = value\nprocess.stdout.write(text)\n")
writeFileSync(value, "export const value: string = 'first' // ✓\n")

const find = () => findStrippedSources('some engine', [sources], cache)

/** Runs the program as a child process is run, with the permission to read that file. */
function run(stripped: string): string {
  const reads = [join(sources, '*'), loadProgram, stripped].map((path) => `--allow-fs-read=${path}`)
  const { stdout, stderr } = spawnSync(process.execPath, ['--permission', ...reads, '--require', loadProgram, main], {
    encoding: 'utf8',
  })
  assert.equal(stderr, '')
  return stdout
}

test('a child runs the JavaScript that was prepared', () => {
  const file = find() ?? ''
  assert.equal(run(file), 'first')
  const [index = '', ...lines] = readFileSync(file, 'utf8').split('\n')
  assert.deepEqual(
    JSON.parse(index).map(([url]: [string]) => url),
    [main, value].map((path) => pathToFileURL(path).href),
  )
  // A prepared text that differs from the source shows which of them runs.
  writeFileSync(file, [index, lines.join('\n').replace("'first'", "'ready'")].join('\n'))
  assert.equal(run(file), 'ready')
})

test('the file is written once for the same sources, and readable for all users', () => {
  const file = find() ?? ''
  const { ino, mode } = statSync(file)
  assert.equal(mode & 0o777, 0o644)
  assert.equal(statSync(find() ?? '').ino, ino)
})

test('a change of the sources is seen, and the file before it removed', () => {
  const before = find()
  writeFileSync(value, "export const value: string = 'other'\n")
  const file = find() ?? ''
  assert.notEqual(file, before)
  assert.equal(run(file), 'other')
  assert.deepEqual(readdirSync(cache), [file.slice(cache.length + 1)])
})

test('a child without the file, or with a broken one, removes the types itself', () => {
  const file = find() ?? ''
  const text = readFileSync(file)
  for (const broken of ['{"', text.subarray(0, -1)]) {
    writeFileSync(file, broken)
    assert.equal(run(file), 'other')
  }
  rmSync(file)
  assert.equal(run(file), 'other')
})

test('an installation that cannot be written to has no file', () => {
  assert.equal(findStrippedSources('some engine', [sources], join(main, 'no-directory')), undefined)
})
