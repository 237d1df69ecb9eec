import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toCsvLine } from '../../src/admin/list-export.ts'

test('cells with commas, quotes and line ends are quoted as RFC 4180 says', () => {
  assert.equal(toCsvLine(['a', -1, '', '']), 'a,-1,,\r\n')
  assert.equal(toCsvLine(['a,b', 'say "x"', 'two\nlines']), '"a,b","say ""x""","two\nlines"\r\n')
})

test('what a spreadsheet would run is made text', () => {
  for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1']) {
    assert.match(toCsvLine([text]), /^"?'/, JSON.stringify(text))
  }
  assert.equal(toCsvLine(['=HYPERLINK("http://x","y")']), `"'=HYPERLINK(""http://x"",""y"")"\r\n`)
  // Numbers of our own are numbers.
  assert.equal(toCsvLine(['a=1', 'b-c']), 'a=1,b-c\r\n')
})
