import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canHoldContent } from '../../../src/domain/content/container.ts'
import { appleSingleReader, macBinaryReader } from '../../../src/engines/unpack/child/readers/apple.ts'
import { hasMember, tryReader } from './read-with.ts'
import { fuzzReader, readWith } from './reader-support.ts'

const data = Buffer.from('The data fork of a file.')
const resource = Buffer.from('The resource fork of a file.')

const u32 = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function newAppleFile(magic: number, entries: [kind: number, content: Buffer][]): Buffer {
  const head = Buffer.concat([u32(magic), u32(0x2_0000), Buffer.alloc(16), Buffer.from([0, entries.length])])
  let at = 26 + entries.length * 12
  const table = entries.map(([kind, content]) => {
    at += content.length
    return Buffer.concat([u32(kind), u32(at - content.length), u32(content.length)])
  })
  return Buffer.concat([head, ...table, ...entries.map(([, content]) => content)])
}

/** The checksum stands in the header where it is given; `0x8284` is right for these forks. */
function newMacBinary(checksum: number | undefined): Buffer {
  const header = Buffer.alloc(128)
  header[1] = 5
  header.write('a.txt', 2)
  header.write('TEXTttxt', 65)
  header.writeUInt32BE(data.length, 83)
  header.writeUInt32BE(resource.length, 87)
  if (checksum !== undefined) {
    header[122] = 129
    header[123] = 129
    header.writeUInt16BE(checksum, 124)
  }
  const fill = (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(128 - (bytes.length % 128))])
  return Buffer.concat([header, fill(data), fill(resource)])
}

test('both forks of AppleSingle and AppleDouble are given', async () => {
  for (const magic of [0x0005_1600, 0x0005_1607]) {
    const file = newAppleFile(magic, [
      [3, Buffer.from('a.txt')],
      [1, data],
      [2, resource],
      [9, Buffer.alloc(32)],
    ])
    assert.ok(canHoldContent(file))
    const { given, doubts, accounted } = await readWith(appleSingleReader, file)
    assert.deepEqual(
      given.map(({ path }) => path),
      ['[data fork]', '[resource fork]'],
    )
    assert.ok(hasMember(given, data) && hasMember(given, resource))
    assert.deepEqual(doubts, [])
    assert.equal(accounted.at(-1)?.end, file.length)
  }
})

test('an AppleSingle file that is cut is a doubt', async () => {
  const file = newAppleFile(0x0005_1600, [[1, data]])
  const { given, doubts } = await readWith(appleSingleReader, file.subarray(0, -4))
  assert.ok(hasMember(given, data.subarray(0, -4)))
  assert.deepEqual(doubts, ['UnsupportedContainer'])
})

test('both forks of MacBinary are given, with a checksum and without', async () => {
  for (const file of [newMacBinary(0x8284), newMacBinary(undefined)]) {
    assert.ok(canHoldContent(file))
    const { given, doubts, accounted } = await readWith(macBinaryReader, file)
    assert.deepEqual(
      given.map(({ path, bytes }) => [path, bytes.toString()]),
      [
        ['a.txt', data.toString()],
        ['[resource fork]', resource.toString()],
      ],
    )
    assert.deepEqual(doubts, [])
    assert.deepEqual(accounted, [{ start: 0, end: file.length }])
  }
})

test('a header with another checksum, or with lengths that do not fit, is not MacBinary', async () => {
  assert.deepEqual((await tryReader(macBinaryReader, newMacBinary(1))).accounted, [])
  assert.deepEqual((await tryReader(macBinaryReader, newMacBinary(undefined).subarray(0, -128))).accounted, [])
})

test('changed files never throw', async () => {
  await fuzzReader(appleSingleReader, [newAppleFile(0x0005_1600, [[1, data]])], 500)
  await fuzzReader(macBinaryReader, [newMacBinary(undefined)], 500)
})
