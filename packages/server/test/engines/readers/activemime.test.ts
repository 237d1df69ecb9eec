import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deflateSync } from 'node:zlib'
import { findContainerFormat } from '../../../src/domain/content/container-formats.ts'
import { activeMimeReader } from '../../../src/engines/unpack/child/readers/compressed-streams.ts'
import { fuzzReader, readWith } from './reader-support.ts'

const payload = Buffer.from('A document with macros. '.repeat(100))

/** The head tells in two bytes at 30 where the stream begins. */
function newActiveMime(start: number, { told = start - 46 } = {}): Buffer {
  const head = Buffer.alloc(start, 1)
  head.write('ActiveMime')
  head.writeUInt16LE(told, 30)
  return Buffer.concat([head, deflateSync(payload)])
}

test('the document is given, where the head tells it or where programs usually write it', async () => {
  for (const file of [newActiveMime(50), newActiveMime(100), newActiveMime(554), newActiveMime(50, { told: 9999 })]) {
    assert.equal(findContainerFormat(file)?.name, 'activemime')
    const { given, doubts } = await readWith(activeMimeReader, file)
    assert.ok(given.some(({ bytes }) => bytes.equals(payload)))
    assert.deepEqual(doubts, [])
  }
})

test('bytes around the stream are not accounted for', async () => {
  const file = newActiveMime(50)
  const { accounted } = await readWith(activeMimeReader, Buffer.concat([file, payload]))
  assert.deepEqual(accounted, [{ start: 50, end: file.length }])
})

test('a stream that is cut, or that nothing tells, leaves a doubt', async () => {
  for (const file of [
    newActiveMime(50).subarray(0, -10),
    newActiveMime(200, { told: 0 }),
    Buffer.from('ActiveMime\0\0'),
  ]) {
    assert.deepEqual((await readWith(activeMimeReader, file)).doubts, ['UnsupportedContainer'])
  }
})

test('a text about it is none', () => {
  assert.equal(findContainerFormat(Buffer.from('ActiveMime is a format of Office.')), undefined)
})

test('bad bytes never make the reader throw', () => fuzzReader(activeMimeReader, [newActiveMime(50)], 300))
