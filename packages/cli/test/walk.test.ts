import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { linkSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { toFilePath } from '../src/targets/file-path.ts'
import { toMatcher } from '../src/targets/glob.ts'
import { walk } from '../src/targets/walk.ts'
import { openDir } from './run-cli.ts'

const maxGrowthBytes = 1024 * 1024

test('a walk over 25,000 files takes less than 1 MB of heap', async (t) => {
  const dir = openDir(t)
  const perDirectory = 2500
  // Hard links are created faster than files, and the walk treats them alike.
  for (let i = 0; i < 10; i++) {
    const one = join(dir, String(i))
    mkdirSync(one)
    writeFileSync(join(one, 'first'), 'x')
    for (let n = 1; n < perDirectory; n++) linkSync(join(one, 'first'), join(one, String(n)))
  }
  const walker = new URL('../src/targets/walk.ts', import.meta.url).href
  const program = `
    const { walk } = await import(${JSON.stringify(walker)})
    const grown = () => { gc(); return process.memoryUsage().heapUsed }
    const before = grown()
    let [files, most] = [0, 0]
    for await (const { kind } of walk({ display: ${JSON.stringify(dir)}, raw: ${JSON.stringify(dir)} })) {
      if (kind === 'file' && ++files % 1250 === 0) most = Math.max(most, grown() - before)
    }
    process.stdout.write(JSON.stringify({ files, most }))`
  const options = ['--expose-gc', '--input-type=module', '-e', program]
  const { files, most } = JSON.parse(execFileSync(process.execPath, options, { encoding: 'utf8' }))
  t.diagnostic(`heap grew by ${Math.round(most / 1024)} KB`)
  assert.equal(files, 25_000)
  assert(most < maxGrowthBytes, `${most} bytes`)
})

test('a walk that stops early leaves no directory open', async (t) => {
  const dir = openDir(t)
  mkdirSync(join(dir, 'a/b/c'), { recursive: true })
  writeFileSync(join(dir, 'a/b/c/file'), 'x')
  const countOpen = () => readdirSync('/proc/self/fd').length
  const before = countOpen()
  for (let i = 0; i < 20; i++) {
    for await (const { kind } of walk(toFilePath(dir))) {
      assert.equal(kind, 'file')
      break
    }
  }
  assert(countOpen() < before + 10, `${countOpen()} are open, ${before} were before`)
})

test('patterns match as in shells', () => {
  const matches = (pattern: string, name: string) => toMatcher(pattern)(name)
  assert(matches('*.txt', 'a.txt') && matches('a?c', 'abc') && matches('[a-c]x', 'bx') && matches('[!a-c]x', 'dx'))
  assert(matches('*', 'line\nbreak') && matches('a+(b)', 'a+(b)') && matches('[]]', ']') && matches('.*', '.profile'))
  assert(!matches('*', '.profile') && !matches('*.txt', 'atxt') && !matches('[a-c]x', 'dx') && !matches('a?c', 'ac'))
  assert(matches('[', '[') && matches('a[b', 'a[b') && matches('[\\]x', '\\x'))
})
