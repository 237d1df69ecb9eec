import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { deflateRawSync, deflateSync } from 'node:zlib'
import { headBytes } from '../../../src/domain/content/content.ts'
import { isDocument } from '../../../src/domain/content/document-formats.ts'
import { openBufferSource } from '../../../src/engines/unpack/child/reader.ts'
import { armourReader, openPgpReader } from '../../../src/engines/unpack/child/readers/openpgp.ts'
import { hasMember, lacks, run, tryReader } from './read-with.ts'
import { fuzzReader } from './reader-support.ts'

const payload = Buffer.from('The content of a message. '.repeat(40))
const literalBody = Buffer.concat([Buffer.from('b\x05a.txt\0\0\0\0', 'latin1'), payload])

/** A packet with a length of four bytes, in the old format where that has its tag. */
function newPacket(tag: number, body: Buffer): Buffer {
  const head = Buffer.from(tag < 16 ? [0x80 | (tag << 2) | 2, 0, 0, 0, 0] : [0xc0 | tag, 255, 0, 0, 0, 0])
  head.writeUInt32BE(body.length, head.length - 4)
  return Buffer.concat([head, body])
}

const literal = newPacket(11, literalBody)
const compress = (method: number, bytes: Buffer) => Buffer.concat([Buffer.from([0xa3, method]), bytes])
const signature = newPacket(2, Buffer.from([4, 0, 22, 10, 0, 0, 0, 0, 1, 2, 3, 4]))

describe('content of a message is given', () => {
  const partial = Buffer.concat([
    Buffer.from([0xcb, 0xe9]),
    literalBody.subarray(0, 512),
    Buffer.from([0xc0 + ((literalBody.length - 704) >> 8), (literalBody.length - 704) & 255]),
    literalBody.subarray(512),
  ])
  // Parts of 1, 2, 4, ... 64 bytes: the first of them hold neither the length of the name nor the name.
  const inShortParts = Buffer.concat([
    Buffer.from([0xcb]),
    ...Array.from({ length: 7 }, (_, n) => [
      Buffer.from([0xe0 + n]),
      literalBody.subarray(2 ** n - 1, 2 ** (n + 1) - 1),
    ]).flat(),
    Buffer.from([0xc0 + ((literalBody.length - 127 - 192) >> 8), (literalBody.length - 127 - 192) & 255]),
    literalBody.subarray(127),
  ])
  const forms: Record<string, Buffer> = {
    'literal data': literal,
    'literal data in short parts': inShortParts,
    'literal data in the new format': partial,
    'literal data without a length': Buffer.concat([Buffer.from([0xaf]), literalBody]),
    'literal data behind a signature': Buffer.concat([signature, literal]),
    'literal data behind a marker': Buffer.concat([newPacket(10, Buffer.from('PGP')), literal]),
  }
  for (const [name, content] of Object.entries(forms)) {
    test(name, async () => {
      assert.ok(isDocument(content))
      const { given, doubts } = await tryReader(openPgpReader, content)
      assert.ok(hasMember(given, payload))
      assert.deepEqual(doubts, [])
    })
  }

  for (const [name, content] of Object.entries({
    zip: compress(1, deflateRawSync(literal)),
    zlib: compress(2, deflateSync(literal)),
    'no compression': compress(0, literal),
  })) {
    test(`compressed data by ${name}`, async () => {
      assert.ok(isDocument(content))
      const { given, doubts } = await tryReader(openPgpReader, content)
      assert.ok(hasMember(given, literal))
      assert.deepEqual(doubts, [])
    })
  }
})

test('the key of a password is recognised in each version, and only with a cipher and a mode that exist', () => {
  const rest = Buffer.alloc(40, 0xaa)
  const isRecognised = (...start: number[]) =>
    openPgpReader.recognizes(
      openBufferSource(Buffer.concat([newPacket(3, Buffer.concat([Buffer.from(start), rest])), rest])),
    )
  assert.ok(isRecognised(4, 9, 3, 8))
  assert.ok(isRecognised(5, 9, 2, 3))
  assert.ok(isRecognised(6, 30, 9, 2))
  assert.ok(!isRecognised(5, 200, 77, 3))
  assert.ok(!isRecognised(6, 30, 99, 2))
})

test('damaged compressed data is a doubt', async () => {
  const { doubts } = await tryReader(openPgpReader, compress(2, deflateSync(literal)).subarray(0, -8))
  assert.deepEqual(doubts, ['UnsupportedContainer'])
})

test('encrypted data is told', async () => {
  const key = newPacket(3, Buffer.from([4, 9, 3, 10, 1, 2, 3, 4, 5, 6, 7, 8, 0x60]))
  const sealed = newPacket(18, Buffer.concat([Buffer.from([1]), payload]))
  for (const content of [Buffer.concat([key, sealed]), sealed]) {
    assert.ok(isDocument(content))
    assert.deepEqual((await tryReader(openPgpReader, content)).doubts, ['EncryptedContent'])
  }
})

test('literal data at the start is given, whatever follows it, and as much as there is of it', async () => {
  const { given, doubts } = await tryReader(openPgpReader, Buffer.concat([literal, Buffer.from('no packet at all')]))
  assert.ok(hasMember(given, payload))
  assert.deepEqual(doubts, [])
  const cut = await tryReader(openPgpReader, literal.subarray(0, -3))
  assert.ok(hasMember(cut.given, payload.subarray(0, -3)))
  assert.deepEqual(cut.doubts, ['UnsupportedContainer'])
})

describe('content is given in each form that gpg extracts, and a wrong guess is no doubt', () => {
  const odd = Buffer.from(literalBody)
  odd[0] = 0
  const oddLiteral = newPacket(11, odd)
  const forms: Record<string, Buffer> = {
    'a format that is not known': oddLiteral,
    'a length beyond the end': newPacket(11, Buffer.concat([odd, Buffer.alloc(9)])).subarray(0, -9),
    'a comment before it': Buffer.concat([newPacket(61, payload), literal]),
    'a damaged key before it': Buffer.concat([newPacket(6, payload), oddLiteral]),
    'many packets before it': Buffer.concat([...Array.from({ length: 500 }, () => newPacket(12, payload)), literal]),
    'a packet of a reserved kind before it': Buffer.concat([newPacket(0, payload), literal]),
    'a packet before it that is longer than the head': Buffer.concat([newPacket(12, Buffer.alloc(80_000)), literal]),
  }
  for (const [name, content] of Object.entries(forms)) {
    test(name, async () => {
      assert.ok(isDocument(content.subarray(0, headBytes)))
      const { given, doubts, accounted } = await tryReader(openPgpReader, content)
      assert.ok(hasMember(given, payload))
      assert.deepEqual([doubts, accounted], [[], []])
    })
  }

  test('a compressed packet that ends before its length says', async () => {
    for (const inner of [literal, Buffer.concat([newPacket(60, payload), oddLiteral])]) {
      const packet = newPacket(8, Buffer.concat([Buffer.from([1]), deflateRawSync(inner), Buffer.alloc(9)]))
      const { given, doubts } = await tryReader(openPgpReader, packet.subarray(0, -9))
      assert.ok(hasMember(given, inner))
      assert.deepEqual(doubts, ['UnsupportedContainer'])
    }
  })

  test('encrypted data behind a comment', async () => {
    const key = newPacket(3, Buffer.from([4, 9, 3, 10, 1, 2, 3, 4, 5, 6, 7, 8, 0x60]))
    const sealed = newPacket(18, Buffer.concat([Buffer.from([1]), payload]))
    const { doubts } = await tryReader(openPgpReader, Buffer.concat([newPacket(61, payload), key, sealed]))
    assert.deepEqual(doubts, ['EncryptedContent'])
  })

  test('bytes that repeat are no packets: each part of them would be like the whole', async () => {
    for (const bytes of [[0xcb], [0xac], [0xcb, 0xcc], [0xaf, 0xaf, 0xb0]]) {
      const { given } = await tryReader(openPgpReader, Buffer.alloc(10_000, Buffer.from(bytes)))
      assert.deepEqual(given, [])
    }
  })
})

test('content behind signatures in armour is given', async () => {
  const packets = Buffer.concat([...Array.from({ length: 5 }, () => signature), literal])
  const text = `-----BEGIN PGP SIGNATURE-----\n\n${packets.toString('base64')}\n-----END PGP SIGNATURE-----\n`
  assert.ok(hasMember((await tryReader(armourReader, text)).given, packets))
})

test('armour of OpenPGP behind bytes of a program is given, as GnuPG skips them', async () => {
  const content = `\x7fELF\x02\x01\x01${'\0'.repeat(60)}\n-----BEGIN PGP MESSAGE-----\n\n${literal.toString('base64')}\n-----END PGP MESSAGE-----\n`
  const { given, accounted } = await tryReader(armourReader, content)
  assert.ok(hasMember(given, literal))
  assert.deepEqual(accounted, [])
  assert.deepEqual((await tryReader(armourReader, content.replaceAll('PGP MESSAGE', 'DATA'))).given, [])
})

test('other bytes are not taken for packets', async () => {
  const samples = [
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    Buffer.from([0xa3, 1, ...payload]),
    Buffer.from([0xa6, 0, 0, 1, 0, ...payload]),
    Buffer.concat([Buffer.from([0xd2, 0x30]), payload]),
    Buffer.from('\u00c4rger und \u00d6l'),
    literal.subarray(0, 3),
  ]
  for (const sample of samples) assert.deepEqual((await tryReader(openPgpReader, sample)).accounted, [])
})

describe('ASCII armour', () => {
  const encode = (label: string, bytes: Buffer, headers = '') =>
    `-----BEGIN ${label}-----\n${headers}\n${bytes.toString('base64').replace(/.{64}/g, '$&\n')}\n=abcd\n-----END ${label}-----\n`

  test('gives the bytes of a message, also behind text', async () => {
    const content = `Text.\n\n${encode('PGP MESSAGE', literal, 'Comment: a\n')}`
    const { given, doubts } = await tryReader(armourReader, content)
    assert.ok(hasMember(given, literal))
    assert.deepEqual(doubts, [])
  })

  test('gives other bytes that call themselves a certificate', async () => {
    assert.ok(hasMember((await tryReader(armourReader, encode('CERTIFICATE', payload))).given, payload))
  })

  test('gives nothing for keys, certificates and signatures', async () => {
    const certificate = Buffer.concat([Buffer.from([0x30, 0x82, payload.length >> 8, payload.length & 255]), payload])
    const content = encode('CERTIFICATE', certificate) + encode('PGP SIGNATURE', signature)
    assert.deepEqual((await tryReader(armourReader, content)).given, [])
  })

  test('gives the text of a signed message without its escapes', async () => {
    const content = `-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\none\n- -two\n${encode('PGP SIGNATURE', signature)}`
    assert.ok(hasMember((await tryReader(armourReader, content)).given, 'one\n-two\n'))
  })

  test('tells of encrypted content of age', async () => {
    const { doubts } = await tryReader(armourReader, encode('AGE ENCRYPTED FILE', payload))
    assert.deepEqual(doubts, ['EncryptedContent'])
  })

  test('never fails on damaged text', async () => {
    await fuzzReader(armourReader, [Buffer.from(encode('PGP MESSAGE', literal, 'Comment: a\n'))], 300)
  })
})

describe('by GnuPG', { skip: lacks('gpg') }, () => {
  const home = mkdtempSync(join(tmpdir(), 'assay-gpg-'))
  after(() => rmSync(home, { recursive: true, force: true }))
  const gpg = (...args: string[]) =>
    run('gpg', ['--homedir', home, '--batch', '--quiet', '--no-autostart', ...args], { input: payload })

  for (const method of ['uncompressed', 'zip', 'zlib']) {
    test(`stored data, ${method}`, async () => {
      const outer = await tryReader(openPgpReader, gpg('--compress-algo', method, '--store'))
      const inner = await Promise.all(outer.given.map(({ bytes }) => tryReader(openPgpReader, bytes)))
      assert.ok(hasMember([...outer.given, ...inner.flatMap(({ given }) => given)], payload))
    })
  }
})

test('damaged packets never fail', async () => {
  const message = Buffer.concat([signature, literal])
  await fuzzReader(
    openPgpReader,
    [message, compress(1, deflateRawSync(message)), compress(2, deflateSync(literal))],
    600,
  )
})
