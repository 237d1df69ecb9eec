import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { deflateSync } from 'node:zlib'
import { pdfReader } from '../../../src/engines/unpack/child/readers/pdf.ts'
import { writePdf } from './pdf-writer.ts'
import { hasMember, tryReader } from './read-with.ts'

const payload = Buffer.from('The content of an attachment.')
const flate = { dictionary: '/Filter /FlateDecode', data: deflateSync(payload) }
const digits = { dictionary: '/Filter /ASCIIHexDecode', data: Buffer.from(`${payload.toString('hex')}>`) }

describe('an attachment is a doubt whose filter makes a picture: Poppler decodes it to the bytes of a file', () => {
  const filter = '/Filter [/CCITTFaxDecode]'
  const data = Buffer.from('a picture')
  const change = (content: Buffer, from: RegExp, to: string) =>
    Buffer.from(content.toString('latin1').replace(from, to), 'latin1')
  const image = '/Type /XObject /Subtype /Image'
  const forms: Record<string, Buffer> = {
    'by its type': writePdf({ dictionary: filter, data }),
    'without a type': change(writePdf({ dictionary: filter, data }), /\/Type \/EmbeddedFile/, ''),
    'as a picture': change(writePdf({ dictionary: filter, data }), /\/Type \/EmbeddedFile/, image),
    'behind another filter': writePdf({ dictionary: '/Filter [/FlateDecode /JPXDecode]', data: flate.data }),
    'by an escaped key': change(
      change(writePdf({ dictionary: filter, data }), /\/Type \/EmbeddedFile/, ''),
      /\/EF/,
      '/#45F',
    ),
    'by a reference': change(
      change(writePdf({ dictionary: filter, data }, '<< /UF 5 0 R >>'), /\/Type \/EmbeddedFile/, ''),
      /\/EF <<[^>]*>>/,
      '/EF 6 0 R',
    ),
  }
  for (const [name, content] of Object.entries(forms)) {
    test(name, async () => {
      assert.deepEqual((await tryReader(pdfReader, content)).doubts, ['UnsupportedContainer'])
    })
  }

  test('but not a picture beside it', async () => {
    const picture = `<< ${image} /Filter /DCTDecode /Length 9 >>\nstream\n123456789\nendstream`
    assert.deepEqual((await tryReader(pdfReader, writePdf(flate, picture))).doubts, [])
  })
})

describe('an attachment whose dictionary is damaged is given', () => {
  const forms: Record<string, [RegExp, string]> = {
    'at its end': [/ >>\nstream/, '>\nstream'],
    'without an end': [/ >>\nstream/, '\nstream'],
    'in its middle': [/ \/Filter/, ' ] ) \x01 /Filter'],
    'with the short key of its filter': [/\/Filter/, '/F'],
  }
  for (const [name, [from, to]] of Object.entries(forms)) {
    test(name, async () => {
      const content = Buffer.from(writePdf(digits).toString('latin1').replace(from, to), 'latin1')
      assert.ok(hasMember((await tryReader(pdfReader, content)).given, payload))
    })
  }
})

test('an attachment in digits is not taken for seen by ClamAV, which stops at line ends', async () => {
  const data = Buffer.from(digits.data.toString().replace(/.{18}/g, '$&\n'))
  const { given } = await tryReader(pdfReader, writePdf({ ...digits, data }))
  assert.ok(given.some(({ bytes, isSeen }) => bytes.equals(payload) && !isSeen))
})

describe('an attachment that ClamAV does not scan is not taken for seen', () => {
  const stored = { dictionary: '/A /Filter', data: payload }
  const forms: Record<string, Buffer> = {
    'which says that it is a picture': writePdf({ ...flate, dictionary: `/Subtype /Image ${flate.dictionary}` }),
    'whose description alone tells that it is one': Buffer.from(
      writePdf(flate).toString('latin1').replace('/Type /EmbeddedFile', '/Type /XObject /Subtype /Image'),
      'latin1',
    ),
    'with the name of a filter as a value': writePdf(stored),
  }
  for (const [name, content] of Object.entries(forms)) {
    test(name, async () => {
      const { given } = await tryReader(pdfReader, content)
      assert.ok(given.some(({ bytes, isSeen }) => bytes.equals(payload) && !isSeen))
    })
  }

  test('but a picture of a page is', async () => {
    const picture = `<< /Subtype /Image /Filter /FlateDecode /Length ${flate.data.length} >>\nstream\n`
    const object = `${picture}${flate.data.toString('latin1')}\nendstream`
    const { given } = await tryReader(pdfReader, writePdf({ dictionary: '', data: Buffer.from('text') }, object))
    assert.ok(given.some(({ bytes, isSeen }) => bytes.equals(payload) && isSeen))
  })
})
