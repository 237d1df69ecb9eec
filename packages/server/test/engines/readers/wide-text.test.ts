import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canHoldContent } from '../../../src/domain/content/container.ts'
import { wideTextReader } from '../../../src/engines/unpack/child/readers/wide-text.ts'
import { tryReader } from './read-with.ts'
import { fuzzReader } from './reader-support.ts'

const script = '$bytes = [Convert]::FromBase64String("AAECAwQFBgc=")\r\n'
const utf16 = (text: string) => Buffer.from(text, 'utf16le')
const swapped = (bytes: Buffer) => Buffer.from(bytes).swap16()

function utf32(text: string, isLittleEndian: boolean): Buffer {
  const bytes = Buffer.alloc(4 * text.length)
  for (let at = 0; at < text.length; at++) {
    if (isLittleEndian) bytes.writeUInt32LE(text.charCodeAt(at), 4 * at)
    else bytes.writeUInt32BE(text.charCodeAt(at), 4 * at)
  }
  return bytes
}

const forms = {
  'UTF-16': utf16(`\ufeff${script}`),
  'UTF-16, most significant byte first': swapped(utf16(`\ufeff${script}`)),
  'UTF-16 without a mark': utf16(script),
  'UTF-16 without a mark, most significant byte first': swapped(utf16(script)),
  'UTF-32': utf32(`\ufeff${script}`, true),
  'UTF-32, most significant byte first': utf32(`\ufeff${script}`, false),
}

for (const [name, bytes] of Object.entries(forms)) {
  test(`${name} is given with one byte for each character`, async () => {
    assert.ok(canHoldContent(bytes))
    const { given, accounted } = await tryReader(wideTextReader, bytes)
    assert.deepEqual(
      given.map((member) => member.bytes.toString()),
      [script],
    )
    // A container may begin in what looks like such a text.
    assert.deepEqual(accounted, [])
  })
}

test('characters beyond one byte, and half of one at the end, stop nothing', async () => {
  const text = `\ufeff${'長い文章'.repeat(40)} é ${script.repeat(3000)}`
  const { given } = await tryReader(wideTextReader, Buffer.concat([utf16(text), Buffer.from('x')]))
  const narrowed = Buffer.concat(given.map(({ bytes }) => bytes)).toString('latin1')
  assert.equal(narrowed, text.slice(1).replaceAll(/[^\0-\xff]/g, '?'))
})

test('bytes and other texts are not taken for it', () => {
  for (const bytes of [
    Buffer.from(script),
    Buffer.alloc(100),
    utf16('short'),
    Buffer.from('fffe', 'hex'),
    Buffer.from('fffe0100020003000400050006000700', 'hex'),
    Buffer.from('4d005a00900003000000040000000000ffff0000b8000000', 'hex'),
  ]) {
    assert.equal(canHoldContent(bytes), false, bytes.toString('hex'))
  }
})

test('bad bytes never make the reader throw', () => fuzzReader(wideTextReader, Object.values(forms), 300))
