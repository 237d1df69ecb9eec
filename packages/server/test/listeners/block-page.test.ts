import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toBlockHeaders, toBlockPage } from '../../src/listeners/icap/icap-response.ts'

const hostile = '<script>alert(1)</script>"\r\nSet-Cookie: a=b;é'

test('a name stays text in the page and on its line in the headers', () => {
  const block = { is: 'threat' as const, name: hostile, reference: '"><b>' }
  const { head, body } = toBlockPage(block)
  const page = body.toString()
  assert.doesNotMatch(page, /<script|<b>/)
  assert.match(page, /&lt;script&gt;alert\(1\)/)
  assert.match(head.toString(), new RegExp(`^HTTP/1.1 403 Forbidden\r\n(.*\r\n)*Content-Length: ${body.length}\r\n`))
  for (const value of Object.values(toBlockHeaders(block))) assert.match(value, /^[\x20-\x7e]*$/)
  assert.equal(toBlockHeaders(block)['X-Virus-ID']?.includes(';'), false)
})

test('what was not scanned is blocked by name, and called no infection', () => {
  const block = { is: 'unscanned' as const, name: 'EncryptedContent', reference: 'abc' }
  assert.match(toBlockPage(block).body.toString(), /could not be scanned.*EncryptedContent.*abc/s)
  assert.deepEqual(toBlockHeaders(block), {})
})
