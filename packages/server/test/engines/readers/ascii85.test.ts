import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { hasEncoded } from '../../../src/domain/content/encoded-text.ts'
import { ascii85Reader } from '../../../src/engines/unpack/child/readers/ascii85.ts'
import { hasMember, lacks, run, tryReader } from './read-with.ts'
import { fuzzReader } from './reader-support.ts'

const payload = Buffer.concat([
  Buffer.from(Array.from({ length: 301 }, (_, i) => (i * 7) % 256)),
  Buffer.alloc(8),
  Buffer.from('        The end.'),
])

/** Encodes bytes as Adobe does, without marks. */
function encode(bytes: Buffer): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += 4) {
    const group = bytes.subarray(at, at + 4)
    let value = Buffer.concat([group, Buffer.alloc(4 - group.length)]).readUInt32BE()
    let chars = ''
    for (let i = 0; i < 5; i++) {
      chars = String.fromCharCode(0x21 + (value % 85)) + chars
      value = Math.floor(value / 85)
    }
    text += chars === '!!!!!' && group.length === 4 ? 'z' : chars.slice(0, group.length + 1)
  }
  return text
}

const data = encode(payload)
const lines = data.replace(/.{1,72}/g, '$&\n')
const prose = 'A line of text, which has very few words.\n'.repeat(40)
const other = Buffer.from(Array.from({ length: 100 }, (_, i) => 255 - i))

describe('Ascii85 in text is given', () => {
  const forms: Record<string, string> = {
    alone: `<~${data}~>`,
    'without the first mark': `${data}~>\n`,
    'in lines': `<~${lines}~>`,
    'in lines with line ends of Windows': `<~\r\n${lines.replaceAll('\n', '\r\n')}~>\r\n`,
    'with empty lines': `<~${lines.replaceAll('\n', '\n\n')}~>`,
    'behind text': `${prose}<~${data}~>${prose}`,
    'behind a byte order mark': `\ufeff<~${data}~>`,
    'in a string': `a = b"<~${data.replace(/[\\"]/g, '\\$&')}~>"\n`,
    'in a string with escaped line ends': `{"a": ${JSON.stringify(`<~${lines}~>`)}}`,
    'behind other data': `<~${encode(other)}~>\n${prose}<~${data}~>`,
    'behind other marks': `a <~ b\ngem 'a', '~> 1.0'\n<~ <~${data}~>`,
  }
  for (const [name, content] of Object.entries(forms)) {
    test(name, async () => {
      assert.ok(hasEncoded(Buffer.from(content)))
      const { given, doubts } = await tryReader(ascii85Reader, Buffer.from(content))
      assert.ok(hasMember(given, payload))
      assert.deepEqual(doubts, [])
    })
  }

  for (const options of ['', ', wrapcol=40', ', foldspaces=True']) {
    test(`as Python writes it${options}`, { skip: lacks('python3', '-V') }, async () => {
      const program = `import base64, sys; sys.stdout.buffer.write(base64.a85encode(sys.stdin.buffer.read(), adobe=True${options}))`
      const encoded = run('python3', ['-c', program], { input: payload }).toString()
      assert.ok(hasMember((await tryReader(ascii85Reader, encoded)).given, payload))
    })
  }
})

test('marks with another meaning are none', async () => {
  const texts = [`gem 'a', '~> 1.0'\n`.repeat(50), `<~${prose}~>`, `a<~b~>c ${prose}`, `<~${data.slice(0, 60)}~>`, '~>']
  for (const text of texts) {
    assert.ok(!hasEncoded(Buffer.from(text)), text.slice(0, 40))
    assert.deepEqual((await tryReader(ascii85Reader, text)).given, [], text.slice(0, 40))
  }
})

test('data in great number is given together', async () => {
  const files = Array.from({ length: 1500 }, (_, n) => `<~${encode(Buffer.from(`${n}`.padStart(100, 'a')))}~>\n`)
  assert.equal((await tryReader(ascii85Reader, files.join(''))).given.length, 1001)
})

test('damaged data never fails', () => fuzzReader(ascii85Reader, [Buffer.from(`${prose}<~${lines}~>`)], 300))
