import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { hasEncoded } from '../../../src/domain/content/encoded-text.ts'
import { numberTextReader } from '../../../src/engines/unpack/child/readers/number-text.ts'
import { hasMember, lacks, run, tryReader } from './read-with.ts'
import { fuzzReader } from './reader-support.ts'

const payload = Buffer.from(Array.from({ length: 300 }, (_, i) => (i * 7) % 256))
const write = (form: (byte: number) => string, joint = ', ') => [...payload].map(form).join(joint)
const toHex = (byte: number) => byte.toString(16).padStart(2, '0')
const numbers = write(String)
const text = 'A line of text, which a bad decade added.\n'.repeat(50)
const wrap = (list: string, width = 76) => list.replace(new RegExp(`(.{1,${width}})(?: |$)`, 'g'), '$1\n')

describe('bytes that a text has as numbers are given', () => {
  const forms: Record<string, string> = {
    'in a call': `${text}a = bytes([${numbers}])\n${text}`,
    'in lines': `a = [\n${wrap(numbers)}]\n`,
    'in lines with line ends of Windows': `a = [\n${wrap(numbers)}]\n`.replaceAll('\n', '\r\n'),
    'without blanks': `{"type":"Buffer","data":[${write(String, ',')}]}`,
    alone: numbers,
    'with blanks only': write(String, ' '),
    'one in each line': write(String, '\n'),
    'one in each line behind text': `Bytes: 300\n${write(String, '\n')}\n`,
    'one in each element of JSON': `[\n    ${write(String, ',\n    ')}\n]`,
    'in two lines and empty ones': `\n\n${wrap(numbers, 700)}\n\n`,
    'behind a byte order mark': `\ufeff${numbers}`,
    'in hexadecimal digits': `char a[] = {${write((byte) => `0x${toHex(byte)}`)}};`,
    'in upper case': `byte[] a = {${write((byte) => `0X${toHex(byte).toUpperCase()}`, ',')}};`,
    'without leading zeros': `a = (${write((byte) => `0x${byte.toString(16)}`)})`,
    'with signs': `byte[] a = {${write((byte) => String(byte > 127 ? byte - 256 : byte))}};`,
    'as pairs of digits': `"a"=hex:${write(toHex, ',').replace(/.{75}/g, '$&\\\r\n  ')}\r\n`,
    'in octal digits': write((byte) => byte.toString(8).padStart(3, '0'), ' '),
    'behind other numbers': `a = [1, 2, 3]\nb = [${numbers}]\nc = 4\n`,
    'behind larger numbers': `a = 300, 400, [${numbers}]`,
  }
  for (const [name, content] of Object.entries(forms)) {
    test(name, async () => {
      assert.ok(hasEncoded(Buffer.from(content)))
      const { given, doubts } = await tryReader(numberTextReader, Buffer.from(content))
      assert.ok(hasMember(given, payload))
      assert.deepEqual(doubts, [])
    })
  }

  for (const [program, ...options] of [
    ['xxd', '-i'],
    ['xxd', '-i', '-u'],
    ['od', '-An', '-v', '-tu1'],
    ['od', '-An', '-v', '-td1'],
    ['od', '-An', '-v', '-b'],
  ] as const) {
    test(`as ${program} ${options.join(' ')} writes it`, { skip: lacks(program, '--version') }, async () => {
      const content = run(program, options, { input: payload })
      assert.ok(hasEncoded(content))
      assert.ok(hasMember((await tryReader(numberTextReader, content)).given, payload))
    })
  }
})

test('numbers that are larger than one piece of the source are whole', async () => {
  const large = Buffer.alloc(2 ** 18 + 5, payload)
  const content = `a = [${large.join(', ')}]`
  assert.ok(content.length > 2 ** 20)
  const { given } = await tryReader(numberTextReader, content)
  assert.ok(hasMember(given, large))
})

test('other numbers are no bytes', async () => {
  const texts = [
    text,
    `[${'1000, 2000, 3000, '.repeat(50)}]`,
    `[${'1, 2, 3, 400, '.repeat(50)}]`,
    `[${payload.subarray(0, 64).join(', ')}]`,
    `[${'0, 60, '.repeat(100)}]`,
    '2026-11-19 10:11:12 1 2 3\n'.repeat(50),
    ' '.repeat(500),
    ', '.repeat(300),
    '0.5, 1.5, 2.25, '.repeat(50),
  ]
  for (const text of texts) assert.deepEqual((await tryReader(numberTextReader, text)).given, [], text.slice(0, 40))
  for (const text of [texts[1], texts[3], texts[6], texts[7]].map(String))
    assert.ok(!hasEncoded(Buffer.from(text)), text.slice(0, 40))
})

test('lists in great number are given together', async () => {
  const lists = Array.from({ length: 1500 }, (_, n) => `[${payload.subarray(0, 80).join(', ')}, ${n % 256}]\n`)
  assert.equal((await tryReader(numberTextReader, lists.join(''))).given.length, 1001)
})

test('damaged lists never fail', () => fuzzReader(numberTextReader, [Buffer.from(`${text}[${wrap(numbers)}]`)], 300))
