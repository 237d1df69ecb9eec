import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findContainerFormat } from '../../../src/domain/content/container-formats.ts'
import { tnefReader } from '../../../src/engines/unpack/child/readers/tnef.ts'
import { hasMember } from './read-with.ts'
import { fuzzReader, readWith } from './reader-support.ts'

const payload = Buffer.from('The payload that mail programs extract. '.repeat(3))
const other = Buffer.from('Another value of at least sixty-four bytes, which nobody may leave out. ')

const u32 = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
const pad = (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)])

function newAttribute(level: number, id: number, data: Buffer): Buffer {
  const checksum = Buffer.alloc(2)
  checksum.writeUInt16LE(data.reduce((sum, byte) => sum + byte, 0) & 0xffff)
  return Buffer.concat([Buffer.of(level), u32(id), u32(data.length), data, checksum])
}
const newTnef = (...attributes: Buffer[]) => Buffer.concat([Buffer.from('789f3e220100', 'hex'), ...attributes])

const rendering = newAttribute(2, 0x0006_9002, Buffer.alloc(14))
const title = newAttribute(2, 0x0001_8010, Buffer.from('report.doc\0'))
const data = newAttribute(2, 0x0006_800f, payload)
const attachmentValues = (...values: Buffer[]) =>
  newAttribute(2, 0x0006_9005, Buffer.concat([u32(values.length), ...values]))
const newValue = (tag: number, bytes: Buffer) => Buffer.concat([u32(tag), u32(1), u32(bytes.length), pad(bytes)])

const forms: Record<string, Buffer> = {
  'an attribute': newTnef(rendering, title, data),
  'an attribute in front of its name': newTnef(rendering, data, title),
  'a binary value': newTnef(rendering, title, attachmentValues(newValue(0x3701_0102, payload))),
  'an object, behind the identifier of its interface': newTnef(
    rendering,
    title,
    attachmentValues(newValue(0x3701_000d, Buffer.concat([Buffer.alloc(16, 7), payload]))),
  ),
  'a value behind values of all other kinds': newTnef(
    rendering,
    title,
    attachmentValues(
      ...[2, 3, 4, 10, 11].map((type) => Buffer.concat([u32(0x0e21_0000 + type), u32(1)])),
      ...[5, 6, 7, 20, 64].map((type) => Buffer.concat([u32(0x3007_0000 + type), Buffer.alloc(8)])),
      Buffer.concat([u32(0x3007_0048), Buffer.alloc(16)]),
      Buffer.concat([u32(0x3007_1003), u32(3), Buffer.alloc(12)]),
      newValue(0x3704_001e, Buffer.from('a.doc\0')),
      Buffer.concat([
        u32(0x3707_101f),
        u32(2),
        ...[other, Buffer.from('a\0')].flatMap((one) => [u32(one.length), pad(one)]),
      ]),
      Buffer.concat([u32(0x8001_0003), Buffer.alloc(16), u32(0), u32(1), u32(5)]),
      Buffer.concat([u32(0x8002_0003), Buffer.alloc(16), u32(1), u32(6), pad(Buffer.from('a\0b\0\0\0')), u32(5)]),
      newValue(0x3701_0102, payload),
    ),
  ),
}

for (const [name, tnef] of Object.entries(forms)) {
  test(`an attachment is given from ${name}`, async () => {
    assert.equal(findContainerFormat(tnef)?.name, 'tnef')
    const { given, doubts, accounted } = await readWith(tnefReader, tnef)
    assert.deepEqual(doubts, [])
    assert.equal(given.find(({ bytes }) => bytes.equals(payload))?.path, 'report.doc')
    assert.equal(accounted.at(-1)?.end, tnef.length)
  })
}

test('every long value is given, whatever it means', async () => {
  const numbers = Buffer.alloc(80, 'a row of numbers')
  assert.ok(
    hasMember((await readWith(tnefReader, forms['a value behind values of all other kinds'] as Buffer)).given, other),
  )
  const message = newTnef(
    newAttribute(1, 0x0002_800c, other),
    newAttribute(1, 0x0006_9003, Buffer.concat([u32(1), newValue(0x1009_0102, payload)])),
    newAttribute(1, 0x0001_2345, Buffer.concat([payload, other])),
    attachmentValues(Buffer.concat([u32(0x3007_1003), u32(numbers.length / 4), numbers])),
  )
  const { given } = await readWith(tnefReader, message)
  for (const bytes of [other, payload, numbers, Buffer.concat([payload, other])]) assert.ok(hasMember(given, bytes))
})

test('zeros and a line end behind the last attribute are no doubt', async () => {
  for (const end of ['\r\n', '\0\0\0\0', '\0'.repeat(100)]) {
    assert.deepEqual((await readWith(tnefReader, Buffer.concat([newTnef(data), Buffer.from(end)]))).doubts, [])
  }
})

test('what cannot be followed is a doubt', async () => {
  const whole = newTnef(rendering, data)
  for (const broken of [
    whole.subarray(0, -3),
    whole.subarray(0, 40),
    newTnef(newAttribute(9, 1, other), data),
    newTnef(attachmentValues(Buffer.concat([u32(0x3701_0099), payload]))),
    newTnef(attachmentValues(Buffer.concat([u32(0x3701_0102), u32(1), u32(5000), payload]))),
    newTnef(newAttribute(2, 0x0006_9005, u32(7))),
    newTnef(newAttribute(2, 0x0006_9005, Buffer.alloc(2))),
  ]) {
    assert.deepEqual((await readWith(tnefReader, broken)).doubts, ['UnsupportedContainer'], broken.toString('hex'))
  }
})

test('bad bytes never make the reader throw', () => fuzzReader(tnefReader, Object.values(forms), 400))
