import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Content } from '../../src/domain/content/content.ts'
import { hasEncoded, isText, mayHoldEncoded, newEncodedSearch } from '../../src/domain/content/encoded-text.ts'

const data = Buffer.from(Array.from({ length: 68 }, (_, i) => (i * 37) % 256)).toString('base64')
const prose = 'A line of text with ordinary words, as people write it.\n'.repeat(40)
const hex = Buffer.from(data).toString('hex')
const toLines = (width: number, text = data) => text.replace(new RegExp(`.{${width}}`, 'g'), '$&\n')

describe('text that may hold encoded data or changes of files', () => {
  const forms: Record<string, string> = {
    'one line': data,
    'the alphabet for addresses': data.replaceAll('+', '-').replaceAll('/', '_'),
    'behind prose': `${prose}${data}\n${prose}`,
    'commands that append': toLines(40).replace(/(.+)\n?/g, '@echo $1 >> a.txt\r\n'),
    'strings that are joined': toLines(20).replace(/(.+)\n?/g, "  '$1' +\n"),
    'escaped slashes': `{"a":"${data.replaceAll('/', '\\/')}"}`,
    'escaped line ends': `{"a":"${toLines(48).replaceAll('\n', '\\n')}"}`,
    'references to line ends': `<a b="${toLines(48).replaceAll('\n', '&#13;')}"/>`,
    'indented lines': `a: !!binary |\n${toLines(24).replace(/^/gm, '    ')}`,
    'lines between empty ones': toLines(20).replaceAll('\n', '\n\n'),
  }
  Object.assign(forms, {
    'hexadecimal digits': hex,
    'hexadecimal digits in a command': `echo ${hex.slice(0, 60)}\n${toLines(60, hex.slice(60))}`,
    'lines of hexadecimal digits': toLines(16, hex).toUpperCase(),
    'hexadecimal digits of each byte': toLines(48, hex.replace(/../g, '$& ')),
    'a dump': toLines(40, hex.replace(/..../g, '$& ')).replace(/.+/g, '00000010: $&  X5O!P%@AP.....'),
  })
  Object.assign(forms, {
    base32: `${prose}${'KRSXG5BAMRQXIYI3'.repeat(7)}\n`,
    Ascii85: `${prose}<~${'9jqo^BlbD-'.repeat(10)}~>\n`,
    'a list of numbers': `a = [${[...Buffer.from(data)].join(', ')}]\n`,
    'a dump with places': toLines(48, hex.replace(/../g, '$& ')).replace(/.+/g, '0000020 $& |X5O!P%@AP.....|'),
    'a unified diff': `${prose}@@ -0,0 +1 @@\n+a\n`,
    'an indented diff': `${prose}  @@ -1,3 +1,4 @@ name\n   a\n`,
    'a context diff': `${prose}***************\n*** 1,2 ****\n--- 1 ----\n`,
    'a context diff behind short lines': 'ab\nabc\n***************\n*** 0 ****\n--- 1 ----\n+ a\n',
    'a normal diff': `${prose}1c1\n< a\n---\n> b\n`,
    'a normal diff alone': '0a1\r\n> a\r\n',
    'binary data of Git': `${prose}GIT binary patch\nliteral 0\n`,
  })
  for (const width of [1, 2, 3, 4, 19, 30, 31, 32, 33, 60, 63, 64, 76]) forms[`lines of ${width}`] = toLines(width)
  for (const [name, text] of Object.entries(forms)) test(name, () => assert.ok(hasEncoded(Buffer.from(text))))
})

describe('text without encoded data', () => {
  const texts: Record<string, string> = {
    prose,
    'hashes of files': `${'0123456789abcdef'.repeat(8)}  a.txt\n`.repeat(20),
    'hashes of packages': `"integrity": "sha512-${data.slice(0, 86)}==",\n`.repeat(20),
    'long words': 'aVeryLongNameOfSomethingThatIsNotBase(anotherName)\n'.repeat(20),
    'lines drawn with signs': `${'='.repeat(80)}\n${'-'.repeat(80)}\n${'#'.repeat(80)}\n`,
    'a list of words': 'Apple\nGrape\nLemon\nMango\nPeach\n'.repeat(10),
    'lists of larger numbers': `[${'1000, 20, 3'.repeat(200)}]`,
    'lines that begin with a time': '20261119 10 11 12 a\n'.repeat(50),
    'requirements of versions': "gem 'a', '~> 1.0'\n".repeat(50),
    'a list of numbers': '12345\n67890\n'.repeat(50),
    empty: '',
  }
  for (const [name, text] of Object.entries(texts)) test(name, () => assert.ok(!hasEncoded(Buffer.from(text))))
})

test('a web page with uuencode or BinHex may hold encoded data, in one piece and in several', async () => {
  const page = Buffer.from(`<html><pre>\n${prose}begin 644 a.com\n#0V%T\n\`\nend\n</pre></html>`)
  assert.equal(await mayHoldEncoded({ whole: page } as Content), true)
  const binHex = Buffer.from(`<html><pre>\n  :${'$f*TEQKPH#'.repeat(4)}:\n`)
  assert.equal(await mayHoldEncoded({ whole: binHex } as Content), true)
  assert.equal(await mayHoldEncoded({ whole: Buffer.from(`<html>${prose}`) } as Content), false)
  const search = newEncodedSearch()
  assert.deepEqual([page.subarray(0, 500), page.subarray(500)].map(search.take), [false, true])
})

test('encoded data is found wherever pieces end', () => {
  for (const text of [data, toLines(20), toLines(1), hex, toLines(16, hex)]) {
    const whole = Buffer.from(`${prose}${text}\n${prose}`)
    for (let at = prose.length; at <= prose.length + text.length; at += 7) {
      const search = newEncodedSearch()
      const found = [whole.subarray(0, at), whole.subarray(at)].map((piece) => search.take(piece))
      assert.ok(found.includes(true), `${at - prose.length} of ${text.slice(0, 30)}`)
    }
  }
})

test('content that does not begin as text is not searched', async () => {
  assert.ok(isText(Buffer.from('\ufeffText\n')))
  assert.ok(!isText(Buffer.from(`\x7fELF\x02\x01\x01\0${data}`, 'latin1')))
  const toContent = (text: string, isWhole: boolean): Content => ({
    bytes: text.length,
    head: Buffer.from(text).subarray(0, 64),
    sha1: '',
    sha256: '',
    isInMemory: true,
    whole: isWhole ? Buffer.from(text) : undefined,
    async *read() {
      for (let at = 0; at < text.length; at += 50) yield Buffer.from(text.slice(at, at + 50))
    },
    async release() {},
  })
  for (const isWhole of [true, false]) {
    assert.equal(await mayHoldEncoded(toContent(`${prose}${data}`, isWhole)), true)
    assert.equal(await mayHoldEncoded(toContent(prose, isWhole)), false)
    assert.equal(await mayHoldEncoded(toContent(`\0\0\0${prose}${data}`, isWhole)), false)
  }
})
