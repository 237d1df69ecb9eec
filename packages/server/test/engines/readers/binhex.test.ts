import assert from 'node:assert/strict'
import { test } from 'node:test'
import { writeBinHex } from '../../../../../acceptance/corpus/apple-writer.ts'
import { binHexReader } from '../../../src/engines/unpack/child/readers/binhex.ts'
import { hasMember, tryReader } from './read-with.ts'
import { fuzzReader } from './reader-support.ts'

const payload = Buffer.from([...Buffer.from('The payload that programs extract.'), 0x90, 0x90, 0, 1, 0x90])
const file = writeBinHex(payload, 'a.com').toString('latin1')
const [sentence = '', data = ''] = file.split('\n\n')

test('the file is given, whatever stands around it and however its lines are written', async () => {
  for (const text of [
    file,
    `Hello,\r\nhere is the file.\r\n\r\n${file}\r\nBye.\r\n`,
    file.replaceAll('\n', '\r\n'),
    file.replaceAll('\n', '\r'),
    `${sentence}\n\n${data.replaceAll('\n', '')}\n`,
    `${sentence}\n\n ${data.replaceAll('\n', '\n ')}`,
    `${sentence}\nA line between.\n${data}`,
    file.replace('BinHex 4.0', 'binhex'),
    data,
    `A text.\n \t${data}`,
    file.replace('converted', 'conve\x81ted'),
    `${'An ordinary line of text.\n'.repeat(60_000)}${file}`,
  ]) {
    const { given, doubts } = await tryReader(binHexReader, text)
    assert.deepEqual(given, [{ path: 'a.com', bytes: payload, isSeen: false }], text.slice(0, 200))
    assert.deepEqual(doubts, [])
  }
})

test('the file is given behind a damaged sentence', async () => {
  assert.ok(hasMember((await tryReader(binHexReader, file.replace('h', '\0'))).given, payload))
})

test('lines that begin with a colon are no file', async () => {
  for (const line of [`:${'-'.repeat(70)}`, `:${'A'.repeat(64)}:`, `:${'!'.repeat(64)}:`, ': a list of words'])
    assert.deepEqual(await tryReader(binHexReader, `A text.\n${line}\n`), { given: [], doubts: [], accounted: [] })
})

test('bytes around the file are not accounted for', async () => {
  const before = `${'A line of text. '.repeat(4)}7z\xbc\xaf\x27\x1c\n`
  const { accounted } = await tryReader(binHexReader, `${before}${file}more`)
  // The checksum at the end is not needed.
  const [start, end] = [file.indexOf(':') + 1, file.lastIndexOf(':') - 3]
  assert.deepEqual(accounted, [{ start: before.length + start, end: before.length + end }])
})

test('each of several files is given', async () => {
  const other = Buffer.from('Another file.')
  const { given, doubts } = await tryReader(binHexReader, `${writeBinHex(other)}\n${file}`)
  assert.ok(hasMember(given, other) && hasMember(given, payload))
  assert.deepEqual(doubts, [])
})

test('a file that is cut, or has other characters in it, leaves a doubt', async () => {
  for (const text of [file.slice(0, -20), file.replace(data.slice(50, 52), '{}')]) {
    assert.deepEqual((await tryReader(binHexReader, text)).doubts, ['UnsupportedContainer'])
  }
})

test('more sentences than any text has are too many', async () => {
  const { doubts } = await tryReader(binHexReader, `${sentence}\n`.repeat(1001))
  assert.deepEqual(doubts, ['ScanLimitExceeded'])
})

test('a text about the format holds no file', async () => {
  for (const text of [`The first line is ${sentence}\n\n: a list\n`, 'BinHex']) {
    const { given, doubts, accounted } = await tryReader(binHexReader, text)
    assert.deepEqual([given, doubts, accounted], [[], [], []])
  }
})

test('bad bytes never make the reader throw', () => fuzzReader(binHexReader, [Buffer.from(file)], 400))
