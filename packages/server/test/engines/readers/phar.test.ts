import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deflateRawSync } from 'node:zlib'
import { pharReader } from '../../../src/engines/unpack/child/readers/phar.ts'
import { tryReader } from './read-with.ts'
import { fuzzReader, readWith } from './reader-support.ts'

const payload = Buffer.from('<?php echo "a file in an archive of PHP";')
const stub = '<?php\nPhar::mapPhar();\n__HALT_COMPILER(); ?>\r\n'
const deflated = 0x1000
const bzip2 = 0x2000

type File = { name: string; data: Buffer; flags?: number }

const number = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
const withLength = (text: string) => Buffer.concat([number(text.length), Buffer.from(text)])

/** An archive as PHP's documents describe it: stub, manifest, files. */
function newPhar(files: File[], { start = stub, alias = 'a.phar' } = {}): Buffer {
  const entries = files.map(({ name, data, flags = 0 }) =>
    Buffer.concat([withLength(name), number(9), number(0), number(data.length), number(0), number(flags), number(0)]),
  )
  const manifest = Buffer.concat([
    number(files.length),
    Buffer.from([0x11, 0]),
    number(0x10000),
    withLength(alias),
    withLength(''),
    ...entries,
  ])
  return Buffer.concat([Buffer.from(start), number(manifest.length), manifest, ...files.map(({ data }) => data)])
}

test('stored and compressed files are given', async () => {
  const phar = newPhar([
    { name: 'stored.php', data: payload },
    { name: 'deflated.php', data: deflateRawSync(payload), flags: deflated },
    { name: 'packed.php', data: Buffer.from('BZh9'), flags: bzip2 },
  ])
  const { given, doubts, accounted } = await readWith(pharReader, Buffer.concat([phar, Buffer.alloc(28, 1)]))
  assert.deepEqual(
    given.map(({ path, bytes }) => [path, String(bytes)]),
    [
      ['stored.php', String(payload)],
      ['deflated.php', String(payload)],
      ['packed.php.bz2', 'BZh9'],
    ],
  )
  assert.deepEqual(doubts, [])
  assert.deepEqual(accounted, [{ start: 0, end: phar.length }])
})

test('an archive behind a picture, and with another end of its program, is read', async () => {
  for (const start of ['GIF89a\n__HALT_COMPILER(); ?>\n', '<?php __HALT_COMPILER();', 'x __HALT_COMPILER();?>\r\n']) {
    const { given } = await readWith(pharReader, newPhar([{ name: 'a', data: payload }], { start }))
    assert.deepEqual(given[0]?.bytes, payload, start)
  }
})

test('damaged and cut files leave a doubt', async () => {
  const broken = newPhar([{ name: 'a', data: Buffer.from('no stream'), flags: deflated }])
  assert.deepEqual((await readWith(pharReader, broken)).doubts, ['UnsupportedContainer'])
  const cut = newPhar([{ name: 'a', data: payload }]).subarray(0, -5)
  assert.deepEqual((await readWith(pharReader, cut)).doubts, ['UnsupportedContainer'])
})

test('a program of PHP that only ends there is no archive', async () => {
  const { given } = await tryReader(pharReader, `${stub}data of the program that follows its end`)
  assert.deepEqual(given, [])
})

test('bad bytes never make the reader throw', () =>
  fuzzReader(pharReader, [newPhar([{ name: 'a', data: payload }])], 300))
