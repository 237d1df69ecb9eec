import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { oleReader } from '../../../src/engines/unpack/child/readers/ole.ts'
import { hasMember, lacks, run, tryReader } from './read-with.ts'
import { fuzzReader } from './reader-support.ts'

const payload = Buffer.from('The content of an embedded file. '.repeat(5))

function entry(name: string, type: number, first: number, bytes: number): Buffer {
  const row = Buffer.alloc(128)
  row.write(name, 'utf16le')
  row.writeUInt16LE(name.length * 2 + 2, 64)
  row[66] = type
  row.writeUInt32LE(first >>> 0, 116)
  row.writeUInt32LE(bytes, 120)
  return row
}

const endOfChain = 0xffff_fffe
const free = 0xffff_ffff

function table(...values: number[]): Buffer {
  const sector = Buffer.alloc(512, 255)
  for (const [n, value] of values.entries()) sector.writeUInt32LE(value >>> 0, n * 4)
  return sector
}

const pad = (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)])

/** A compound file with a small stream of at most 448 bytes, and a long one. */
function writeOle(small: { name: string; data: Buffer }, long: { name: string; data: Buffer }): Buffer {
  const header = Buffer.alloc(512)
  Buffer.from('d0cf11e0a1b11ae1', 'hex').copy(header)
  header.fill(255, 76)
  for (const [at, value] of [
    [24, 0x3e],
    [26, 3],
    [28, 0xfffe],
    [30, 9],
    [32, 6],
  ] as const)
    header.writeUInt16LE(value, at)
  for (const [at, value] of [
    [44, 1],
    [48, 1],
    [56, 4096],
    [60, 2],
    [64, 1],
    [68, endOfChain],
    [76, 0],
  ] as const)
    header.writeUInt32LE(value, at)
  const sectors = pad(long.data).length / 512
  const chain = Array.from({ length: sectors }, (_, n) => (n === sectors - 1 ? endOfChain : 5 + n))
  const miniCount = Math.ceil(small.data.length / 64)
  const miniChain = Array.from({ length: miniCount }, (_, n) => (n === miniCount - 1 ? endOfChain : n + 1))
  return Buffer.concat([
    header,
    table(0xffff_fffd, endOfChain, endOfChain, endOfChain, ...chain),
    entry('Root Entry', 5, 3, 512),
    entry(small.name, 2, 0, small.data.length),
    entry(long.name, 2, 4, long.data.length),
    entry('', 0, free, 0),
    table(...miniChain),
    pad(small.data),
    pad(long.data),
  ])
}

/** A package as native data, without its length. */
function writePackage(data: Buffer): Buffer {
  const numbers = Buffer.alloc(8)
  numbers.writeUInt32LE(5, 4)
  const size = Buffer.alloc(4)
  size.writeUInt32LE(data.length)
  return Buffer.concat([Buffer.from('\x02\0a.txt\0C:\\a.txt\0'), numbers, Buffer.from('path\0'), size, data])
}

const withLength = (data: Buffer) => {
  const size = Buffer.alloc(4)
  size.writeUInt32LE(data.length)
  return Buffer.concat([size, data])
}

const long = { name: 'Long', data: Buffer.alloc(5000, 'A long stream. ') }
const plain = writeOle({ name: 'Small', data: payload }, long)

test('streams are given, and ClamAV has seen them', async () => {
  const { given, doubts, accounted } = await tryReader(oleReader, plain)
  assert.deepEqual(
    given.map(({ path, bytes, isSeen }) => [path, bytes.equals(path === 'Long' ? long.data : payload), isSeen]),
    [
      ['Small', true, true],
      ['Long', true, true],
    ],
  )
  assert.deepEqual([doubts, accounted], [[], [{ start: 0, end: plain.length }]])
})

test('the file in a package is given', async () => {
  const native = { name: '\x01Ole10Native', data: withLength(writePackage(payload)) }
  const { given, doubts } = await tryReader(oleReader, writeOle(native, long))
  const file = given.find(({ bytes }) => bytes.equals(payload))
  assert.deepEqual([file?.path, file?.isSeen, doubts], ['a.txt', false, []])
})

test('native data without labels is given', async () => {
  const { given } = await tryReader(oleReader, writeOle({ name: '\x01Ole10Native', data: withLength(payload) }, long))
  assert.ok(hasMember(given, payload))
})

test('bytes behind the last sector are not accounted for', async () => {
  const { accounted } = await tryReader(oleReader, Buffer.concat([plain, Buffer.from('more')]))
  assert.deepEqual(accounted, [{ start: 0, end: plain.length }])
})

describe('documents with a password are a doubt', () => {
  const word = Buffer.alloc(64)
  word.writeUInt16LE(0xa5ec, 0)
  word.writeUInt16LE(0x0100, 10)
  const workbook = Buffer.from('0908040000060500e1000200b0042f0006000000aabbccdd', 'hex')
  const slides = Buffer.alloc(32)
  slides.writeUInt32LE(0xf3d1_c4df, 12)
  const forms: Record<string, Buffer> = {
    WordDocument: word,
    Workbook: workbook,
    'Current User': slides,
    EncryptedPackage: Buffer.alloc(64, 1),
  }
  for (const [name, data] of Object.entries(forms)) {
    test(name, async () => {
      const { doubts } = await tryReader(oleReader, writeOle({ name, data }, long))
      assert.deepEqual(doubts, ['EncryptedContent'])
      const clear = await tryReader(oleReader, writeOle({ name: `${name} copy`, data }, long))
      assert.deepEqual(clear.doubts, [])
    })
  }
})

test('a broken chain is a doubt, and 7-Zip reads too', async () => {
  const { doubts, needsSevenZip, given } = await tryReader(oleReader, plain.subarray(0, -1024))
  assert.deepEqual([doubts, needsSevenZip], [['UnsupportedContainer'], true])
  assert.ok(given.every(({ isSeen }) => !isSeen))
})

test('chains that return to themselves end', async () => {
  const looped = Buffer.from(plain)
  looped.writeUInt32LE(4, 512 + 4 * 4)
  looped.writeUInt32LE(1, 512 + 4)
  await tryReader(oleReader, looped)
})

test('streams of an MSI package are given', { skip: lacks('msibuild') }, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-msi-'))
  try {
    writeFileSync(join(dir, 'payload'), payload)
    run('msibuild', ['a.msi', '-s', 'Title', 'Author'], { cwd: dir })
    run('msibuild', ['a.msi', '-a', 'payload', 'payload'], { cwd: dir })
    const { given, doubts } = await tryReader(oleReader, readFileSync(join(dir, 'a.msi')))
    assert.ok(hasMember(given, payload))
    assert.deepEqual(doubts, [])
  } finally {
    rmSync(dir, { recursive: true })
  }
})

test('any bytes can be read', async () => {
  const native = { name: '\x01Ole10Native', data: withLength(writePackage(payload)) }
  await fuzzReader(oleReader, [plain, writeOle(native, long)], 500)
})
