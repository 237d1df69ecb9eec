import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { newResult } from '../../client/test/fake-server.ts'
import { sanitize, sanitizeJson } from '../src/report/sanitize.ts'
import { openFakeCli } from './run-cli.ts'

const result = newResult('threat', ['Virus:\x1b]0;owned\x07', 'Virus:Two'])

test('names of files and threats cannot control the terminal', async (t) => {
  const { cwd, run } = await openFakeCli(t, () => ({ json: result }))
  const names = ['\x1b[2Jclear', 'two\nlines: OK', 'bell\x07', '\u202egnp.exe', 'c1\u009b31m', 'plain é €']
  for (const name of names) writeFileSync(join(cwd, name), name)
  writeFileSync(Buffer.concat([Buffer.from(join(cwd, 'no-utf8-')), Buffer.from([0xff, 0xfe])]), 'x')
  const { code, out } = await run('--no-summary', '.')
  assert.equal(code, 1)
  assert.deepEqual(
    out.trimEnd().split('\n').sort(),
    [
      '\\x1b[2Jclear',
      'two\\nlines: OK',
      'bell\\x07',
      '\\u{202e}gnp.exe',
      'c1\\x9b31m',
      'plain é €',
      'no-utf8-\\xff\\xfe',
    ]
      .map((name) => `./${name}: \\x1b]0;owned\\x07, Two FOUND`)
      .sort(),
  )
  const json = await run('--json', '.')
  assert.doesNotMatch(json.out, /[^\n\x20-\x7eé€]/)
  const lines = json.out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.deepEqual(
    lines
      .map(({ path }) => path)
      .filter((path) => !path.includes('no-utf8'))
      .sort(),
    names.map((name) => `./${name}`).sort(),
  )
  const odd = lines.find(({ path }) => path.includes('no-utf8'))
  assert.deepEqual(Buffer.from(odd.path_base64, 'base64').subarray(-2), Buffer.from([0xff, 0xfe]))
})

test('printable text is unchanged, and unpaired surrogates are escaped', () => {
  for (const text of ['C:\\a b', 'naïve', '日本', '😀']) assert.equal(sanitize(text), text)
  assert.equal(sanitize('\ud83d'), '\\u{d83d}')
  assert.equal(sanitize('a\tb\r'), 'a\\tb\\r')
  assert.deepEqual(JSON.parse(sanitizeJson({ a: '\u009b\u202e😀' })), { a: '\u009b\u202e😀' })
  assert.match(sanitizeJson('\u009b\u202e'), /^"\\u009b\\u202e"$/)
})
