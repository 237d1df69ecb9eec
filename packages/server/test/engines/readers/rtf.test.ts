import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isDocument } from '../../../src/domain/content/document-formats.ts'
import { rtfReader } from '../../../src/engines/unpack/child/readers/rtf.ts'
import { hasMember, tryReader } from './read-with.ts'
import { fuzzReader } from './reader-support.ts'

const payload = Buffer.from('The content of an embedded file. '.repeat(20))

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

const withLength = (data: Buffer) => Buffer.concat([number(data.length), data])

/** An embedded object of OLE 1. */
const newObject = (className: string, data: Buffer) =>
  Buffer.concat([
    number(0x501),
    number(2),
    withLength(Buffer.from(`${className}\0`)),
    number(0),
    number(0),
    withLength(data),
  ])

const newPackage = (data: Buffer) =>
  Buffer.concat([
    Buffer.from('\x02\0a.txt\0C:\\a.txt\0'),
    number(0x0003_0000),
    withLength(Buffer.from('path\0')),
    withLength(data),
  ])

const object = newObject('Other', payload)
const digits = object.toString('hex')
const inDocument = (data: string) => `{\\rtf1 Text {\\object\\objemb{\\*\\objdata ${data}}{\\result text}} more\\par}`

describe('an object is given', () => {
  const half = Math.floor(digits.length / 4) * 2
  const bytes = (from: number, to?: number) => object.subarray(from / 2, to === undefined ? undefined : to / 2)
  const forms: Record<string, string> = {
    'in digits': inDocument(digits),
    'in capital digits': inDocument(digits.toUpperCase()),
    'in lines': inDocument(digits.replace(/.{1,60}/g, '$&\r\n')),
    'with blanks between all digits': inDocument(digits.replace(/./g, '$& \t')),
    'with control words': inDocument(digits.replace(/.{1,51}/g, '$&\\par12 ')),
    'with escaped characters': inDocument(digits.replace(/.{1,51}/g, "$&\\'41\\~")),
    'with empty groups': inDocument(digits.replace(/.{1,51}/g, '$&{}')),
    'with a group that does not count': inDocument(`${digits.slice(0, half)}{\\*\\other abcdef}${digits.slice(half)}`),
    'with digits in a group': inDocument(`${digits.slice(0, half)}{${digits.slice(half)}}`),
    'with other letters between the digits': inDocument(digits.replace(/.{1,51}/g, '$&zyx')),
    'as raw bytes': inDocument(`\\bin${object.length} ${object.toString('latin1')}`),
    'partly as raw bytes': inDocument(
      `${digits.slice(0, half)}\\bin${bytes(half).length} ${bytes(half).toString('latin1')}`,
    ),
    'without an end': inDocument(digits).slice(0, inDocument(digits).indexOf('}{\\result')),
    'with a number behind the keyword': inDocument(digits).replace('\\objdata ', '\\objdata0 '),
  }
  for (const [name, text] of Object.entries(forms)) {
    test(name, async () => {
      assert.ok(isDocument(Buffer.from(text, 'latin1')))
      const { given, doubts, accounted } = await tryReader(rtfReader, text)
      assert.ok(hasMember(given, payload))
      assert.deepEqual([doubts, accounted], [[], [{ start: 0, end: text.length }]])
    })
  }

  test('with the file in a package', async () => {
    const { given } = await tryReader(rtfReader, inDocument(newObject('Package', newPackage(payload)).toString('hex')))
    assert.ok(given.some(({ path, bytes }) => path === 'a.txt' && bytes.equals(payload)))
  })

  test('that is longer than one piece', async () => {
    const long = Buffer.alloc(200_000, 'A long file. ')
    assert.ok(hasMember((await tryReader(rtfReader, inDocument(newObject('A', long).toString('hex')))).given, long))
  })
})

test('text behind the document is not accounted for', async () => {
  const text = '{\\rtf1 A \\} brace and \\bin3 }}} raw bytes}'
  const { accounted, given } = await tryReader(rtfReader, `${text}more`)
  assert.deepEqual([accounted, given], [[{ start: 0, end: text.length }], []])
})

test('any bytes can be read', async () => {
  const samples = [
    inDocument(digits),
    inDocument(`${digits.slice(0, 100)}{\\a}\\bin20 ${payload.toString('latin1', 0, 20)}`),
  ]
  await fuzzReader(
    rtfReader,
    samples.map((text) => Buffer.from(text, 'latin1')),
    500,
  )
})
