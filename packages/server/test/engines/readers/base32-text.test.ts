import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { hasEncoded } from '../../../src/domain/content/encoded-text.ts'
import { base64TextReader } from '../../../src/engines/unpack/child/readers/base64-text.ts'
import { hasMember, lacks, run, tryReader } from './read-with.ts'
import { fuzzReader } from './reader-support.ts'

const payload = Buffer.from(Array.from({ length: 400 }, (_, i) => (i * 7) % 256))
const text = 'A line of text.\n'.repeat(50)

/** Encodes bytes as RFC 4648 tells. */
function encode(bytes: Buffer, letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  const chars = (bits.match(/.{1,5}/g) ?? []).map((five) => letters[Number.parseInt(five.padEnd(5, '0'), 2)])
  return chars.join('').padEnd(Math.ceil(chars.length / 8) * 8, '=')
}

const whole = encode(payload)
const toLines = (width: number, line = '$&\n') => whole.replace(new RegExp(`.{1,${width}}`, 'g'), line)

describe('base32 in text is given', () => {
  const forms: Record<string, string> = {
    'without anything else': whole,
    'without padding': whole.replace(/=+$/, ''),
    'in lower case': whole.toLowerCase(),
    'in the extended alphabet': encode(payload, '0123456789ABCDEFGHIJKLMNOPQRSTUV'),
    'in a string': `import base64\na = base64.b32decode("${whole}")\n`,
    'in strings that are joined': `a = (\n${toLines(60, '  "$&"\n')})\n`,
    'in a here-document': `base32 -d > a <<STOP\n${toLines(76)}STOP\nfi\n`,
    'behind a byte order mark': `\ufeff${toLines(76)}`,
    'with empty lines': toLines(76, '$&\n\n'),
    'with escaped line ends': `{"a": "${toLines(76, '$&\\n')}"}`,
    'behind text': `${text}data: ${whole}\n${text}`,
  }
  for (const width of [1, 8, 20, 31, 32, 64, 76]) {
    forms[`in lines of ${width}`] = toLines(width)
    forms[`in lines of ${width} with line ends of Windows`] = `${text}\n${toLines(width, '$&\r\n')}`
  }
  for (const [name, content] of Object.entries(forms)) {
    test(name, async () => {
      assert.ok(hasEncoded(Buffer.from(content)))
      const { given, doubts } = await tryReader(base64TextReader, Buffer.from(content))
      assert.ok(hasMember(given, payload))
      assert.deepEqual(doubts, [])
    })
  }

  for (const options of [['--base32'], ['--base32hex'], ['--base32', '-w', '20']]) {
    test(`as basenc ${options.join(' ')} writes it`, { skip: lacks('basenc', '--version') }, async () => {
      const encoded = run('basenc', options, { input: payload }).toString()
      assert.ok(hasEncoded(Buffer.from(encoded)))
      assert.ok(hasMember((await tryReader(base64TextReader, encoded)).given, payload))
    })
  }
})

test('the shortest base32 is longer than a hash', async () => {
  for (const [bytes, isFound] of [
    [64, false],
    [65, true],
  ] as const) {
    const content = `${encode(payload.subarray(0, bytes))}\n`
    assert.equal(hasEncoded(Buffer.from(content)), isFound)
    assert.equal(hasMember((await tryReader(base64TextReader, content)).given, payload.subarray(0, bytes)), isFound)
  }
})

test('a container over several strings is given whole, and not its first string alone', async () => {
  const container = gzipSync(payload)
  const content = encode(container).replace(/.{1,120}/g, '"$&",\n')
  const { given } = await tryReader(base64TextReader, content)
  const begun = given.filter(({ bytes }) => bytes.subarray(0, 3).equals(container.subarray(0, 3)))
  assert.deepEqual(
    begun.map(({ bytes }) => bytes),
    [container],
  )
})

test('hashes and names are no base32', async () => {
  const hash = payload.subarray(0, 64).toString('hex')
  const texts = [
    `${hash}  a.txt\n`.repeat(20),
    `--hash=sha256:${hash.slice(0, 64)} \\\n`.repeat(20),
    'A_CONSTANT_WITH_A_LONG_NAME_THAT_HAS_THE_NUMBER_2\n'.repeat(20),
    'AVERYLONGWORDINCAPITALLETTERSOFMANYLETTERS '.repeat(20),
    `[\n${'  1234567890123,\n'.repeat(20)}  null\n]\n`,
    `exec something\n070701${'0'.repeat(104)}a.com\n`,
    'Z'.repeat(500),
  ]
  for (const text of texts) {
    assert.ok(!hasEncoded(Buffer.from(text)), text.slice(0, 60))
    assert.deepEqual((await tryReader(base64TextReader, text)).given, [], text.slice(0, 60))
  }
})

test('damaged base32 never fails', () => fuzzReader(base64TextReader, [Buffer.from(toLines(76))], 300))
