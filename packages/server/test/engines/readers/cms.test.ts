import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { deflateSync } from 'node:zlib'
import { isDocument } from '../../../src/domain/content/document-formats.ts'
import { cmsReader } from '../../../src/engines/unpack/child/readers/cms.ts'
import { hasMember, lacks, run, tryReader } from './read-with.ts'
import { fuzzReader } from './reader-support.ts'

const payload = Buffer.from('The content of a signed message. '.repeat(20))

/** A value of ASN.1 with a length of two bytes. */
function value(tag: number, ...content: Buffer[]): Buffer {
  const body = Buffer.concat(content)
  return Buffer.concat([Buffer.from([tag, 0x82, body.length >> 8, body.length & 255]), body])
}

/** A value without a length. */
const openValue = (tag: number, ...content: Buffer[]) =>
  Buffer.concat([Buffer.from([tag, 0x80]), ...content, Buffer.alloc(2)])

const hex = (text: string) => Buffer.from(text, 'hex')
const rsaName = (last: number) => hex(`06092a864886f70d01070${last}`)
const smimeName = (last: string) => hex(`060b2a864886f70d01091001${last}`)
const version = hex('020101')
const noAlgorithms = hex('3100')
const algorithm = hex('300406022a03')

const enclose = (name: Buffer, content: Buffer) => value(0x30, name, value(0xa0, content))
const newSigned = (inner: Buffer) => enclose(rsaName(2), value(0x30, version, noAlgorithms, inner, noAlgorithms))

describe('content is given', () => {
  const octets = value(0x04, payload)
  const parts = openValue(0x24, value(0x04, payload.subarray(0, 100)), value(0x04, payload.subarray(100)))
  const data = enclose(rsaName(1), octets)
  const forms: Record<string, Buffer> = {
    data,
    'signed data': newSigned(data),
    'signed data without lengths': openValue(
      0x30,
      rsaName(2),
      openValue(0xa0, openValue(0x30, version, noAlgorithms, openValue(0x30, rsaName(1), openValue(0xa0, parts)))),
    ),
    'data with a digest': enclose(rsaName(5), value(0x30, version, algorithm, data, octets)),
    'authenticated data': enclose(smimeName('02'), value(0x30, version, noAlgorithms, algorithm, data)),
    'compressed data': enclose(
      smimeName('09'),
      value(0x30, version, algorithm, enclose(rsaName(1), value(0x04, deflateSync(payload)))),
    ),
  }
  for (const [name, content] of Object.entries(forms)) {
    test(name, async () => {
      assert.ok(isDocument(content))
      const { given, doubts, accounted } = await tryReader(cmsReader, content)
      assert.ok(hasMember(given, payload))
      assert.deepEqual(doubts, [])
      assert.deepEqual(accounted, [{ start: 0, end: content.length }])
    })
  }

  test('signed data in signed data, in two steps', async () => {
    const inner = value(0x30, version, noAlgorithms, data, noAlgorithms)
    const outer = await tryReader(cmsReader, newSigned(enclose(rsaName(2), value(0x04, inner))))
    const { given } = await tryReader(cmsReader, outer.given[0]?.bytes ?? '')
    assert.ok(hasMember(given, payload))
  })
})

test('encrypted content and keystores are told', async () => {
  const keystore = value(0x30, hex('020103'), enclose(rsaName(1), value(0x04, payload)))
  const forms = [3, 4, 6].map((kind) => enclose(rsaName(kind), value(0x30, version, payload)))
  for (const content of [...forms, enclose(smimeName('17'), value(0x30, version)), keystore]) {
    assert.ok(isDocument(content))
    assert.deepEqual((await tryReader(cmsReader, content)).doubts, ['EncryptedContent'])
  }
})

test('a signature without content, certificates and other values are ordinary', async () => {
  for (const content of [newSigned(value(0x30, rsaName(1))), value(0x30, version, algorithm), value(0x30, algorithm)]) {
    const { given, doubts } = await tryReader(cmsReader, content)
    assert.deepEqual([given, doubts], [[], []])
  }
})

test('cut content is a doubt', async () => {
  const content = newSigned(enclose(rsaName(1), value(0x04, payload)))
  const { given, doubts } = await tryReader(cmsReader, content.subarray(0, -100))
  assert.equal(given.length, 1)
  assert.deepEqual(doubts, ['UnsupportedContainer'])
})

test('data of openssl', { skip: lacks('openssl', 'version') }, async () => {
  const create = (...args: string[]) =>
    run('openssl', ['cms', ...args, '-binary', '-outform', 'DER'], { input: payload })
  for (const content of [create('-data_create'), create('-digest_create')]) {
    assert.ok(hasMember((await tryReader(cmsReader, content)).given, payload))
  }
  const secret = '00112233445566778899aabbccddeeff'
  const encrypted = create('-EncryptedData_encrypt', '-secretkey', secret, '-aes128')
  assert.deepEqual((await tryReader(cmsReader, encrypted)).doubts, ['EncryptedContent'])
})

test('damaged values never fail', async () => {
  const parts = openValue(0x24, value(0x04, payload), value(0x04, payload))
  await fuzzReader(cmsReader, [newSigned(openValue(0x30, rsaName(1), openValue(0xa0, parts)))], 600)
})
