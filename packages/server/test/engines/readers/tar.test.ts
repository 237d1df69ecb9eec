import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { findContainerFormat } from '../../../src/domain/content/container-formats.ts'
import { openBufferSource } from '../../../src/engines/unpack/child/reader.ts'
import { tarReader } from '../../../src/engines/unpack/child/readers/tar.ts'
import { fuzzReader, readWith } from './reader-support.ts'

const payload = Buffer.from('The payload that programs extract. '.repeat(5))
const text = Buffer.from('An ordinary text.')
const end = Buffer.alloc(1024)

type Fields = { size?: number; type?: string; sizeField?: string; mark?: string; more?: [at: number, text: string][] }

const octal = (value: number) => `${value.toString(8).padStart(11, '0')}\0`

function newHeader(name: string, { size = 0, type = '0', sizeField, mark = 'ustar\x0000', more = [] }: Fields): Buffer {
  const head = Buffer.alloc(512)
  head.write(name, 0)
  head.write('0000644\x000000000\x000000000\0', 100)
  head.write(`${sizeField ?? octal(size)}${'0'.repeat(11)}\0        ${type}`, 124, 'latin1')
  head.write(mark, 257)
  for (const [at, value] of more) head.write(value, at, 'latin1')
  const sum = head.reduce((total, byte) => total + byte, 0)
  head.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return head
}

const fill = (data: Buffer) => Buffer.concat([data, Buffer.alloc((512 - (data.length % 512)) % 512)])
const newEntry = (name: string, data: Buffer, fields: Fields = {}) =>
  Buffer.concat([newHeader(name, { size: data.length, ...fields }), fill(data)])

function newRecords(records: Record<string, string | number>, type = 'x'): Buffer {
  const lines = Object.entries(records).map(([key, value]) => {
    const rest = ` ${key}=${value}\n`
    const guess = rest.length + String(rest.length).length
    return `${rest.length + String(guess).length}${rest}`
  })
  return newEntry('records', Buffer.from(lines.join('')), { type })
}

const longName = Buffer.from(`${'long-'.repeat(25)}\0`)
const inner = newEntry('inner', payload)
const realBytes = 1024 + payload.length
const map = fill(Buffer.from(`1\n1024\n${payload.length}\n`))

describe('programs read the same, so there is no doubt', () => {
  const forms: [string, Buffer, isSeen: boolean][] = [
    ['a plain tar', Buffer.concat([newEntry('a', payload), end]), true],
    ['a tar without end', newEntry('a', payload), true],
    ['the first form, without signature', Buffer.concat([newEntry('a', payload, { mark: '' }), end]), false],
    [
      'a binary size',
      Buffer.concat([
        newEntry('a', payload, { sizeField: `\x80${'\0'.repeat(10)}${String.fromCharCode(payload.length)}` }),
      ]),
      false,
    ],
    ['an unknown type', Buffer.concat([newEntry('a', payload, { type: 'Z' }), end]), false],
    ['an empty name', Buffer.concat([newEntry('', payload), end]), false],
    ['a long name', Buffer.concat([newEntry('x', longName, { type: 'L' }), newEntry('a', payload)]), true],
    ['records', Buffer.concat([newRecords({ path: 'long', mtime: 1 }), newEntry('a', payload), end]), true],
    ['the same size twice', Buffer.concat([newRecords({ size: payload.length }), newEntry('a', payload), end]), true],
  ]
  for (const [name, tar, isSeen] of forms) {
    test(name, async () => {
      const { given, doubts } = await readWith(tarReader, tar)
      assert.deepEqual(doubts, [])
      assert.equal(given.length, 1)
      assert.ok(given[0]?.bytes.equals(payload))
      assert.equal(given[0]?.isSeen, isSeen)
    })
  }
})

describe('sparse files are given expanded and as they are stored', () => {
  const oldMap = `${octal(1024)}${octal(payload.length)}`
  const forms: [string, Buffer][] = [
    [
      '0.0',
      newRecords({ 'GNU.sparse.size': realBytes, 'GNU.sparse.offset': 1024, 'GNU.sparse.numbytes': payload.length }),
    ],
    ['0.1', newRecords({ 'GNU.sparse.size': realBytes, 'GNU.sparse.map': `1024,${payload.length}` })],
    ['1.0', newRecords({ 'GNU.sparse.major': 1, 'GNU.sparse.minor': 0, 'GNU.sparse.realsize': realBytes })],
  ]
  const expanded = Buffer.concat([Buffer.alloc(1024), payload])
  for (const [name, records] of forms) {
    test(name, async () => {
      const stored = name === '1.0' ? Buffer.concat([map, payload]) : payload
      const { given, doubts } = await readWith(tarReader, Buffer.concat([records, newEntry('a', stored), end]))
      assert.deepEqual(doubts, [])
      assert.deepEqual(
        given.map(({ bytes }) => bytes),
        [expanded, stored],
      )
    })
  }

  test('the old form', async () => {
    const more: [number, string][] = [
      [386, oldMap],
      [483, octal(realBytes)],
    ]
    const { given, doubts } = await readWith(tarReader, newEntry('a', payload, { type: 'S', more }))
    assert.deepEqual(doubts, [])
    assert.deepEqual(
      given.map(({ bytes }) => bytes),
      [expanded, payload],
    )
  })

  test('a map that contradicts itself, and a file that is too large', async () => {
    const records = newRecords({ 'GNU.sparse.size': 10, 'GNU.sparse.map': `1024,${payload.length}` })
    const { doubts } = await readWith(tarReader, Buffer.concat([records, newEntry('a', payload), end]))
    assert.deepEqual(doubts, ['UnsupportedContainer'])
    const huge = newRecords({ 'GNU.sparse.size': 10 ** 12, 'GNU.sparse.map': `1024,${payload.length}` })
    const result = await readWith(tarReader, Buffer.concat([huge, newEntry('a', payload), end]))
    assert.deepEqual(result.doubts, ['ScanLimitExceeded'])
  })
})

describe('programs disagree: each reading is given, with a doubt', () => {
  const forms: [string, Buffer][] = [
    ['a size in the records', Buffer.concat([newRecords({ size: payload.length }), newHeader('a', {}), fill(payload)])],
    ['a size for all', Buffer.concat([newRecords({ size: payload.length }, 'g'), newHeader('a', {}), fill(payload)])],
    ['no size in the records', Buffer.concat([newRecords({ size: 0 }), newEntry('a', inner), end])],
    ['behind the end', Buffer.concat([newEntry('a', text), end, inner, end])],
    ['behind one zero block', Buffer.concat([newEntry('a', text), Buffer.alloc(512), inner, end])],
    ['behind a damaged header', Buffer.concat([newEntry('a', text), Buffer.alloc(512, 'x'), inner, end])],
    ['a size that Python alone reads', newEntry('a', payload, { sizeField: '0000000_257\0' })],
    ['a negative size', Buffer.concat([newHeader('a', { sizeField: '\xff'.repeat(12) }), inner, end])],
    ['a folder without type', Buffer.concat([newEntry('a/', inner), end])],
    ...['1', '2', '3', '4', '5', '6'].map((type): [string, Buffer] => {
      return [`data of type ${type}`, Buffer.concat([newEntry('a', inner, { type }), end])]
    }),
  ]
  for (const [name, tar] of forms) {
    test(name, async () => {
      const { given, doubts } = await readWith(tarReader, tar)
      assert.deepEqual(doubts, ['UnsupportedContainer'])
      assert.ok(given.some(({ bytes }) => bytes.equals(payload)))
    })
  }
})

test('content behind the end is left for a scan of its own', async () => {
  const tar = Buffer.concat([newEntry('a', text), end])
  const { accounted, doubts } = await readWith(tarReader, Buffer.concat([tar, payload]))
  assert.deepEqual(doubts, [])
  assert.deepEqual(accounted, [{ start: 0, end: tar.length }])
})

test('a tar that is cut leaves a doubt', async () => {
  for (const cut of [600, 512 + 100, inner.length + 512 + 3, inner.length + 100]) {
    const { doubts } = await readWith(tarReader, Buffer.concat([inner, inner, end]).subarray(0, cut))
    assert.deepEqual(doubts, ['UnsupportedContainer'], `cut at ${cut}`)
  }
})

test('a header without a signature is found in a later block, to which GNU tar skips', async () => {
  for (const before of [
    Buffer.alloc(512, 'x'),
    Buffer.alloc(20 * 512, 200),
    newHeader('a', { mark: '' }).fill(49, 100, 105),
  ]) {
    const content = Buffer.concat([before, newEntry('b', payload, { mark: '' }), end])
    assert.equal(findContainerFormat(content)?.name, 'tar')
    const { given, doubts } = await readWith(tarReader, content)
    assert.ok(given.some(({ bytes }) => bytes.equals(payload)))
    assert.deepEqual(doubts, ['UnsupportedContainer'])
  }
})

test('ordinary text is no tar', () => {
  const source = openBufferSource(Buffer.from('0123456 some text, which is no tar. '.repeat(50)))
  assert.equal(tarReader.recognizes(source), false)
  const chance = newHeader('a', { mark: '', sizeField: 'no number...' })
  assert.equal(tarReader.recognizes(openBufferSource(chance)), false)
})

test('tars of GNU tar leave no doubt', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'tar-'))
  try {
    writeFileSync(join(folder, 'payload'), payload)
    writeFileSync(join(folder, 'x'.repeat(150)), payload)
    writeFileSync(join(folder, 'sparse'), payload)
    truncateSync(join(folder, 'sparse'), 1_000_000)
    for (const format of ['oldgnu', 'gnu', 'pax']) {
      const { stdout, error } = spawnSync('tar', ['-C', folder, `--format=${format}`, '-S', '-cf', '-', '.'], {
        maxBuffer: 1e8,
      })
      if (error !== undefined) return t.skip('tar is not installed')
      const { given, doubts, accounted } = await readWith(tarReader, stdout)
      assert.deepEqual(doubts, [], format)
      assert.ok(given.some(({ path, bytes }) => path === './payload' && bytes.equals(payload)))
      assert.deepEqual(accounted, [{ start: 0, end: stdout.length }])
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('changed bytes never throw', async () => {
  const records = newRecords({ 'GNU.sparse.major': 1, 'GNU.sparse.minor': 0, 'GNU.sparse.realsize': realBytes })
  const sparse = newEntry('a', Buffer.concat([map, payload]))
  const sample = Buffer.concat([records, sparse, inner, newRecords({ size: 10 }), inner, end])
  await fuzzReader(tarReader, [sample], 400)
})

test('a long name that is none is given, because some programs extract it', async () => {
  for (const type of ['L', 'K']) {
    const tar = Buffer.concat([newEntry('x', payload, { type }), newEntry('a', text), end])
    const { given } = await readWith(tarReader, tar)
    assert.ok(given.some(({ bytes, isSeen }) => bytes.equals(payload) && !isSeen))
  }
  const { given } = await readWith(
    tarReader,
    Buffer.concat([newEntry('x', longName, { type: 'L' }), newEntry('a', text)]),
  )
  assert.equal(given.length, 1)
})

test('ClamAV has not seen a member whose checksum begins with a zero byte', async () => {
  const entry = newEntry('a', payload)
  entry.write(`\0${entry.toString('latin1', 148, 154)}\0`, 148, 'latin1')
  const { given } = await readWith(tarReader, Buffer.concat([entry, end]))
  assert.ok(given.some(({ bytes, isSeen }) => bytes.equals(payload) && !isSeen))
})

test('ClamAV has not seen what stands behind an empty size, at which it stops', async () => {
  for (const sizeField of [' '.repeat(12), '\0'.repeat(12)]) {
    const tar = Buffer.concat([newHeader('a', { sizeField }), newEntry('b', payload), end])
    const { given, doubts } = await readWith(tarReader, tar)
    assert.ok(given.some(({ bytes, isSeen }) => bytes.equals(payload) && !isSeen))
    assert.deepEqual(doubts, [])
  }
})
