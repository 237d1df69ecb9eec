import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findContainerFormat } from '../../../src/domain/content/container-formats.ts'
import { compressedRtfReader } from '../../../src/engines/unpack/child/readers/rtf.ts'
import { fuzzReader, readWith } from './reader-support.ts'

/** The examples of the format's definition: with references into the first dictionary, and to bytes being written. */
const examples: [text: string, hex: string][] = [
  [
    '{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n',
    '2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0',
  ],
  ['{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}', '1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0'],
]

/** Compresses by literal bytes alone. */
function compress(text: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < text.length; at += 8) parts.push(Buffer.of(0), text.subarray(at, at + 8))
  const data = Buffer.concat(parts)
  const head = Buffer.alloc(16)
  head.writeUInt32LE(data.length + 12, 0)
  head.writeUInt32LE(text.length, 4)
  head.write('LZFu', 8)
  return Buffer.concat([head, data])
}

test('the examples of the definition are read', async () => {
  for (const [text, hex] of examples) {
    const bytes = Buffer.from(hex, 'hex')
    assert.equal(findContainerFormat(bytes)?.name, 'compressed-rtf')
    const { given, doubts, accounted } = await readWith(compressedRtfReader, bytes)
    assert.equal(given[0]?.bytes.toString(), text)
    assert.deepEqual(doubts, [])
    assert.deepEqual(accounted, [{ start: 0, end: bytes.length }])
  }
})

test('bytes behind the mark of the end are not accounted for', async () => {
  const bytes = Buffer.concat([Buffer.from(examples[0]?.[1] ?? '', 'hex'), Buffer.alloc(50, 'x')])
  const end = bytes.length - 50
  bytes.writeUInt32LE(bytes.length - 4)
  const { accounted, doubts } = await readWith(compressedRtfReader, bytes)
  assert.deepEqual(accounted, [{ start: 0, end }])
  assert.deepEqual(doubts, [])
})

test('a long text is given whole, and so is one that is not compressed', async () => {
  const text = Buffer.from(`{\\rtf1 ${'A line of a message.\\par\r\n'.repeat(20_000)}}`)
  const plain = Buffer.concat([Buffer.alloc(16), text])
  plain.writeUInt32LE(text.length + 12, 0)
  plain.writeUInt32LE(text.length, 4)
  plain.write('MELA', 8)
  for (const bytes of [compress(text), plain]) {
    const { given, doubts } = await readWith(compressedRtfReader, bytes)
    assert.ok(given[0]?.bytes.equals(text))
    assert.deepEqual(doubts, [])
  }
})

test('a text that is cut leaves a doubt, and what there is of it is given', async () => {
  const { given, doubts } = await readWith(
    compressedRtfReader,
    compress(Buffer.from('a text of a message')).subarray(0, -4),
  )
  assert.deepEqual(doubts, ['UnsupportedContainer'])
  assert.match(given[0]?.bytes.toString() ?? '', /^a text of a mes/)
})

test('a word of a text is not taken for the signature', () => {
  assert.equal(findContainerFormat(Buffer.from('A letter MELANIE has written')), undefined)
})

test('bad bytes never make the reader throw', () =>
  fuzzReader(
    compressedRtfReader,
    examples.map(([, hex]) => Buffer.from(hex, 'hex')),
    500,
  ))
