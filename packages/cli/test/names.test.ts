import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openFakeServer } from '../../client/test/fake-server.ts'
import { toInert, toInertJson } from '../src/report/inert.ts'
import { newEnv, openDir, runCli } from './run-cli.ts'

const result = {
  ...{ id: '0199a3c5-52f1-7c39-8f0e-6f1d5d0f6a3b', scan_type: 'malware', status: 'threat' },
  ...{ content_length: 1, content_type: '', created_at: '', signals: ['Virus:\x1b]0;owned\x07', 'Virus:Two'] },
}

test('names and findings cannot speak to the terminal', async (t) => {
  const cwd = openDir(t)
  const names = ['\x1b[2Jclear', 'two\nlines: OK', 'bell\x07', '\u202egnp.exe', 'c1\u009b31m', 'plain é €']
  for (const name of names) writeFileSync(join(cwd, name), name)
  writeFileSync(Buffer.concat([Buffer.from(join(cwd, 'no-utf8-')), Buffer.from([0xff, 0xfe])]), 'x')
  const fake = await openFakeServer(t, () => ({ json: result }))
  const env = newEnv(cwd, { ASSAY_URL: fake.url, ASSAY_API_KEY: 'key' })
  const { code, out } = await runCli(['--no-summary', '.'], { cwd, env })
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
  const json = await runCli(['--json', '.'], { cwd, env })
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

test('what is harmless is left as it is, halves of characters are not', () => {
  for (const text of ['C:\\a b', 'naïve', '日本', '😀']) assert.equal(toInert(text), text)
  assert.equal(toInert('\ud83d'), '\\u{d83d}')
  assert.equal(toInert('a\tb\r'), 'a\\tb\\r')
  assert.deepEqual(JSON.parse(toInertJson({ a: '\u009b\u202e😀' })), { a: '\u009b\u202e😀' })
  assert.match(toInertJson('\u009b\u202e'), /^"\\u009b\\u202e"$/)
})
