import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { readContent } from '../../../src/engines/unpack/child/read-content.ts'
import type { Reading } from '../../../src/engines/unpack/child/reader.ts'
import { openBufferSource } from '../../../src/engines/unpack/child/source.ts'
import { member, newTar, newZip, writeArchive } from '../unpack-archives.ts'
import { collectMembers } from './reader-support.ts'

const text = Buffer.from('#!/bin/sh\nexec something\n')

/** Reads content; instead of 7-Zip, a stand-in records the type that it was asked for and accounts for everything. */
async function read(content: Buffer, sevenZip: Partial<Reading> = {}) {
  const { given, members } = collectMembers()
  const types: string[] = []
  const answer = await readContent(openBufferSource(content), members, async (source, type) => {
    types.push(type)
    return { accounted: [{ start: 0, end: source.bytes }], doubts: [], ...sevenZip }
  })
  return { ...answer, given, types }
}

describe('a container behind other content is read, and the rest is content of its own', () => {
  test('zip, gzip, tar', async () => {
    for (const container of [newZip([{}]), gzipSync(member), newTar(['a'])]) {
      const { given, doubts } = await read(Buffer.concat([text, container, text]))
      assert.deepEqual(doubts, [])
      assert.ok(given.some(({ bytes }) => bytes.equals(member)))
      assert.ok(given.some(({ bytes }) => bytes.subarray(0, text.length).equals(text)))
      assert.ok(given.every(({ isSeen }) => !isSeen))
    }
  })

  test('7z and bzip2, by 7-Zip', async () => {
    assert.deepEqual((await read(Buffer.concat([text, await writeArchive(['-t7z'])]))).types, ['7z'])
    assert.deepEqual((await read(Buffer.concat([text, await writeArchive(['-tbzip2'])]))).types, ['bzip2'])
  })
})

test('a container that begins with text is read by 7-Zip, whatever readers of text make of it', async () => {
  const script = '#!/bin/sh\ncat > a <<END\ntext\nEND\n'
  const header = `${'script.sh/'.padEnd(16)}0           0     0     644     ${String(script.length).padEnd(10)}\`\n`
  assert.deepEqual((await read(Buffer.from(`!<arch>\n${header}${script}`))).types, ['ar'])
})

test('chance is no container: what only looks like one raises no doubt', async () => {
  const noise = ['PK\x03\x04', '\x1f\x8b\x08', 'BZh91AY&SY', '7z\xbc\xaf\x27\x1c', 'Rar!\x1a\x07\x00', 'ustar', 'MSCF']
  const content = Buffer.from(`text ${noise.map((bytes) => `${bytes}and text that follows `).join('')}`, 'latin1')
  const { doubts, isOpened } = await read(content, { accounted: [], doubts: ['UnsupportedContainer'] })
  assert.deepEqual([doubts, isOpened], [[], false])
})

test('a gzip header in a program is no container, and does not hide one behind it', async () => {
  const header = Buffer.from(
    '\x1f\x8b\x08\0\0\0\0\0\0\x03requires=corerouter and whatever a linker places behind it',
    'latin1',
  )
  const { doubts, given } = await read(Buffer.concat([text, header, text, newZip([{}])]))
  assert.deepEqual(doubts, [])
  assert.ok(given.some(({ bytes }) => bytes.equals(member)))
})

test('a Zstandard header in a program is no container, whatever 7-Zip makes of it', async () => {
  const header = Buffer.concat([Buffer.from('28b52ffd00000000', 'hex'), Buffer.from('COLUMNS\0write\0\0\0read\0')])
  const broken: Partial<Reading> = { doubts: ['UnsupportedContainer'], givenBytes: 0 }
  assert.deepEqual((await read(Buffer.concat([text, header]), broken)).doubts, [])
  const further: Partial<Reading> = { ...broken, givenBytes: 5000 }
  assert.deepEqual((await read(Buffer.concat([text, header]), further)).doubts, ['UnsupportedContainer'])
})

test('a gzip file that breaks further in is a doubt', async () => {
  const file = gzipSync(randomBytes(5000)).subarray(0, 3000)
  assert.deepEqual((await read(Buffer.concat([text, file]))).doubts, ['UnsupportedContainer'])
})

test('a container that is certainly one, and does not open, is a doubt', async () => {
  const archive = await writeArchive(['-t7z'])
  const content = Buffer.concat([text, archive])
  const { doubts } = await read(content, { accounted: [], doubts: ['UnsupportedContainer'] })
  assert.deepEqual(doubts, ['UnsupportedContainer'])
  const installer = Buffer.concat([text, Buffer.from('rDlPtS\xcd\xe6\xd7\x7b\x0b\x2a and more', 'latin1')])
  assert.deepEqual((await read(installer)).doubts, ['UnsupportedContainer'])
})

test('formats that ClamAV skips are given without the bytes by which it tells them', async () => {
  for (const head of ['ID3\x03', 'OggS', '.RMF', '\xff\xfb\x90', 'SQLite format 3\0']) {
    const content = Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from('and so on')])
    const { given, doubts } = await read(content)
    assert.deepEqual(doubts, [])
    assert.deepEqual(
      given.map(({ bytes }) => bytes.toString('latin1')),
      [content.subarray(1).toString('latin1')],
    )
  }
})

test('an archive in a database of SQLite is a doubt', async () => {
  const content = 'SQLite format 3\0CREATE TABLE sqlar(name TEXT PRIMARY KEY, data BLOB)'
  assert.deepEqual((await read(Buffer.from(content))).doubts, ['UnsupportedContainer'])
})
