import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { hasEncoded } from '../../../src/domain/content/encoded-text.ts'
import { base64TextReader } from '../../../src/engines/unpack/child/readers/base64-text.ts'
import { hasMember, tryReader } from './read-with.ts'
import { fuzzReader } from './reader-support.ts'

const payload = Buffer.from(Array.from({ length: 400 }, (_, i) => (i * 7) % 256))
const whole = payload.toString('base64')
const lines = whole.replace(/.{76}/g, '$&\n')
const parts = lines.split('\n')
const full = Buffer.from(Array.from({ length: 57 * 4 }, (_, i) => (i * 11) % 256))
const fullLines = full.toString('base64').replace(/.{76}/g, '$&\n')
const text = 'A line of text.\n'.repeat(50)

describe('base64 in text is given', () => {
  const forms: Record<string, string> = {
    'at the end of a script': `#!/bin/sh\ntail -n +3 "$0" | base64 -d | tar x\n${lines}\n`,
    'in a variable': `#!/bin/sh\na="${whole}"\necho "$a" | base64 -d\n`,
    'in a variable of several lines': `#!/bin/sh\na='${lines}'\necho "$a" | base64 -d\n`,
    'in a command': `#!/bin/sh\necho ${whole} | base64 -d > a\n`,
    'in strings that are joined': `const a =\n${parts.map((part) => `  '${part}'`).join(' +\n')}\nwrite(a)\n`,
    'in strings that are joined on one line': `const a = ${parts.map((part) => `"${part}"`).join('+')};write(a)\n`,
    'in strings that continue': `a = ${parts.map((part) => `"${part}"`).join(' \\\n    ')}\n`,
    'in statements of the same form': `${text}${parts.map((part) => `$a .= "${part}";\n`).join('')}write($a);\n`,
    'in commands that append': `@echo off\r\n${parts.map((part) => `echo ${part} >> a.b64\r\n`).join('')}certutil -decode a.b64 a.exe\r\n`,
    'in an array': `[\n${parts.map((part) => `"${part}"`).join(',\n')}\n]`,
    'with escaped line ends': `{"a": "${lines.replaceAll('\n', '\\n')}", "b": 1}`,
    'with escaped slashes': `{"a": "${whole.replaceAll('/', '\\/')}"}`,
    'in the alphabet for addresses': `token = "${payload.toString('base64url')}"\n`,
    'as a data address': `<svg><image href="data:image/png;base64,${whole}"/></svg>`,
    'in an element': `<a><binaryData>\r\n    ${parts.join('\r\n    ')}\r\n</binaryData></a>`,
    'behind text and other base64': `${text}a = "${full.toString('base64')}"\n${text}b = "${whole}"\n`,
    'without anything else': whole,
  }
  for (const [name, content] of Object.entries(forms)) {
    test(name, async () => {
      const { given, doubts, accounted } = await tryReader(base64TextReader, content)
      assert.ok(hasMember(given, payload))
      assert.deepEqual(doubts, [])
      assert.deepEqual(accounted, [{ start: 0, end: content.length }])
    })
  }
})

test('base64 behind a few control characters is given', async () => {
  for (const content of [`a \x02 text\n${lines}\n`, `<a>\n<b\x7f\x01>${lines}</b></a>`, `${text}\x03\n"${whole}"\n`]) {
    assert.ok(hasMember((await tryReader(base64TextReader, content)).given, payload))
  }
})

test('a container over several lines is given whole, and not its first lines alone', async () => {
  const container = gzipSync(randomBytes(900))
  const encoded = container.toString('base64')
  const wrapped = encoded.replace(/.{76}/g, '$&\\n')
  const forms = {
    'strings that are joined': `a = [${encoded.replace(/.{76}/g, '$&",\n"')}"]\n`.replace('[', '["'),
    'behind a word, with escaped line ends': `    file = """${wrapped.slice(0, 39)}\n${wrapped.slice(39).replace(/(?:\\n|.){63}/g, '$&\n')}\\n"""\n`,
  }
  for (const [name, content] of Object.entries(forms)) {
    const { given } = await tryReader(base64TextReader, content)
    const begun = given.filter(({ bytes }) => bytes.subarray(0, 3).equals(container.subarray(0, 3)))
    assert.equal(begun.length, 1, name)
    assert.ok(begun[0]?.bytes.subarray(0, container.length).equals(container), name)
  }
})

test('base64 in short lines is given, with the start of it behind other text', async () => {
  for (const width of [1, 4, 7, 20, 31]) {
    const lines = whole.replace(new RegExp(`.{${width}}`, 'g'), '$&\n')
    for (const content of [lines, `${text}${lines}\n${text}`, lines.replaceAll('\n', '\r\n'), `data:\n${lines}\n`]) {
      const { given } = await tryReader(base64TextReader, content)
      assert.ok(hasMember(given, payload), `${width}: ${content.slice(0, 40)}`)
    }
  }
  const indented = whole.slice(11).replace(/.{24}/g, '$&\n ')
  for (const [start, end] of [
    ['photo:: ', ''],
    ['const a = "', '" +'],
    ['a=("', '"'],
  ]) {
    const { given } = await tryReader(base64TextReader, `${start}${whole.slice(0, 11)}${end}\n ${indented}\n`)
    assert.ok(hasMember(given, payload), start)
  }
})

test('a short word in front of base64 may be its start', async () => {
  for (const joint of ['\n', ' ', '"\n"']) {
    for (const rest of [whole.slice(6), whole.slice(6).replace(/.{76}/g, '$&\n')]) {
      const { given } = await tryReader(base64TextReader, `${whole.slice(0, 6)}${joint}${rest}\n`)
      assert.ok(hasMember(given, payload), JSON.stringify(joint))
    }
  }
})

test('a line that is damaged is given up to the damage', async () => {
  const { given, accounted } = await tryReader(base64TextReader, `base64 -d <<x\n${fullLines.slice(0, 112)}\x01abc\n`)
  assert.ok(hasMember(given, full.subarray(0, 83)))
  assert.deepEqual(accounted, [{ start: 0, end: 91 }])
})

test('a word behind base64 is not taken for its last line', async () => {
  const { given } = await tryReader(base64TextReader, `base64 -d > a <<STOP\n${fullLines}STOP\nexit\n`)
  assert.ok(hasMember(given, full))
})

describe('base64 that begins behind a name is given whole', () => {
  const fold = (firstChars: number, blanks: string) =>
    `${whole.slice(0, firstChars)}${whole.slice(firstChars).replace(/.{1,74}/g, `\r\n${blanks}$&`)}`
  for (const firstChars of [0, 12, 31, 32, 40, 73, 74]) {
    const forms = {
      'a calendar': `BEGIN:VEVENT\r\nATTACH;ENCODING=BASE64;VALUE=BINARY:${fold(firstChars, ' ')}\r\nEND:VEVENT\r\n`,
      'a contact': `FN:a\r\nPHOTO;ENCODING=b;TYPE=JPEG:${fold(firstChars, '\t')}\r\nEND:VCARD\r\n`,
      'an entry of LDIF': `dn: cn=a\njpegPhoto:: ${fold(firstChars, ' ').replaceAll('\r', '')}\n`,
      'an indented element': `<a>\n  <b>${fold(firstChars, '      ')}\n  </b>\n</a>\n`,
    }
    for (const [name, content] of Object.entries(forms)) {
      test(`${name}, ${firstChars} characters in its first line`, async () => {
        assert.ok(hasEncoded(Buffer.from(content)))
        assert.ok(hasMember((await tryReader(base64TextReader, content)).given, payload))
      })
    }
  }

  test('and without the text in front of it', async () => {
    const { given } = await tryReader(base64TextReader, `sum: ${'aB12'.repeat(9)}\n${lines.replace(/^/gm, '  ')}\n`)
    assert.ok(hasMember(given, payload))
  })
})

test('each of several strings is given', async () => {
  const files = [full, payload.subarray(0, 180), payload.subarray(7, 187)]
  const { given } = await tryReader(
    base64TextReader,
    files.map((file) => `file("${file.toString('base64')}")\n`).join(''),
  )
  for (const file of files) assert.ok(hasMember(given, file))
})

test('references to line ends join the lines of base64 in XML', async () => {
  const payload = Buffer.from(Array.from({ length: 200 }, (_, n) => (n * 37) & 255))
  const lines = payload.toString('base64').match(/.{1,76}/g) ?? []
  for (const joint of ['&#10;', '&#13;', '&#13;\n', '&#xA;', '&#xD;&#xA;', '&#x0d;\r\n  ']) {
    const { given } = await tryReader(base64TextReader, `<a b="${lines.join(joint)}">`)
    assert.ok(hasMember(given, payload), joint)
  }
})

test('base64 that is larger than one piece of the source is whole', async () => {
  const large = Buffer.alloc(1.5 * 2 ** 20, payload)
  for (const content of [large.toString('base64'), large.toString('base64').replace(/.{76}/g, '$&\n')]) {
    const { given } = await tryReader(base64TextReader, `a='${content}'\n`)
    assert.ok(given.length <= 3)
    assert.ok(hasMember(given, large))
  }
})

test('ordinary text has nothing to give', async () => {
  const contents = [
    text,
    '',
    `${'0123456789abcdef'.repeat(8)}  a.txt\n`,
    `"integrity": "sha512-${Buffer.alloc(64, payload).toString('base64')}",\n`,
    `import { aVeryLongName } from '${'../folder/'.repeat(20)}file.js'\n`,
    `${'='.repeat(100)}\n${'-'.repeat(100)}\n${'A'.repeat(100)}\n`,
    `-----BEGIN PUBLIC KEY-----\n${Buffer.concat([Buffer.from([0x30, 90]), Buffer.alloc(90, payload)]).toString('base64')}\n-----END PUBLIC KEY-----\n`,
  ]
  for (const content of contents) assert.deepEqual((await tryReader(base64TextReader, content)).given, [], content)
})

test('base64 in great number is given together, without a doubt', async () => {
  const runs = Array.from({ length: 1500 }, (_, i) =>
    Buffer.concat([Buffer.from([i >> 8, i]), payload.subarray(0, 64)]),
  )
  const strings = runs.map((run) => `"${run.toString('base64')}"`)
  const { given, doubts } = await tryReader(base64TextReader, `${strings.join('\nnext: ')}\nnext: "${whole}"\n`)
  assert.equal(given.length, 1001)
  assert.ok(given.at(-1)?.bytes.includes(payload))
  assert.deepEqual(doubts, [])
})

test('damaged text never fails', async () => {
  const sample = `a = "${parts.join('" +\n "')}"\n$b .= "${parts.join('"\n$b .= "')}"\n{"c": "${lines.replaceAll('\n', '\\n')}\\/"}`
  await fuzzReader(base64TextReader, [Buffer.from(sample, 'latin1')], 250)
})
