import assert from 'node:assert/strict'
import { test } from 'node:test'
import { markInvisible, parseMarked } from '../src/api/marked-json.ts'

test('characters that hide or reorder text are shown by their number', () => {
  const cases: [string, string][] = [
    ['invoice\u202egnp.exe', 'invoice<U+202E>gnp.exe'],
    ['a\u200bb\u200dc\u2060d', 'a<U+200B>b<U+200D>c<U+2060>d'],
    ['\u0000\u001b[31m\r\u0085\u007f', '<U+0000><U+001B>[31m<U+000D><U+0085><U+007F>'],
    ['a\u2028b\u2029', 'a<U+2028>b<U+2029>'],
    ['a\u3164b\u115f\u00ad\u2800\ufeff', 'a<U+3164>b<U+115F><U+00AD><U+2800><U+FEFF>'],
    ['a\u{e0041}\u{e007f}', 'a<U+E0041><U+E007F>'],
    ['a\u2066b\u2069', 'a<U+2066>b<U+2069>'],
    ['a\ufe0fb', 'a<U+FE0F>b'],
  ]
  for (const [text, shown] of cases) assert.equal(markInvisible(text), shown)
})

test('text of people is shown as it is', () => {
  for (const text of [
    'Größe.pdf',
    '请柬.docx',
    'می\u200cخواهم.txt',
    '👩\u200d💻❤\ufe0f.png',
    'שלום.txt',
    'a\tb\nc',
    '',
  ]) {
    assert.equal(markInvisible(text), text)
  }
})

test('all texts of a response are marked, and nothing else changes', () => {
  const answer = { names: ['a\u202eb'], count: 3, more: { ok: true, none: null } }
  assert.deepEqual(parseMarked(JSON.stringify(answer)), { ...answer, names: ['a<U+202E>b'] })
})
