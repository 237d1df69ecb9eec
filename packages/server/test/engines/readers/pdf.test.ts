import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { deflateSync } from 'node:zlib'
import { canHoldContent } from '../../../src/domain/content/container.ts'
import { pdfReader } from '../../../src/engines/unpack/child/readers/pdf.ts'
import { writePdf } from './pdf-writer.ts'
import { hasMember, lacks, run, tryReader } from './read-with.ts'
import { fuzzReader } from './reader-support.ts'

const payload = Buffer.from('The content of an attachment, long enough for several rows. '.repeat(16))
const columns = payload.length / 4

const flate = { dictionary: '/Filter /FlateDecode', data: deflateSync(payload) }
const hexDigits = Buffer.from(`${payload.toString('hex')}>`)

/** Rows of PNG with the filter that takes the byte above. */
function predictUp(): Buffer {
  const rows = [0, 1, 2, 3].map((n) => payload.subarray(n * columns, (n + 1) * columns))
  return Buffer.concat(
    rows.flatMap((row, n) => [Buffer.from([2]), Buffer.from(row.map((byte, at) => byte - (rows[n - 1]?.[at] ?? 0)))]),
  )
}

const predicted = deflateSync(predictUp())
const parameters = `<< /Predictor 12 /Columns ${columns} >>`
const tiff = Buffer.from(payload.map((byte, n) => (n % columns === 0 ? byte : byte - (payload[n - 1] ?? 0))))
const runs = Buffer.concat([
  ...Array.from({ length: Math.ceil(payload.length / 100) }, (_, n) => {
    const piece = payload.subarray(n * 100, n * 100 + 100)
    return Buffer.concat([Buffer.from([piece.length - 1]), piece])
  }),
  Buffer.from([128]),
])

describe('an attachment in an object that begins twice is given, and not taken for seen by ClamAV', () => {
  const change = (from: RegExp, to: string) =>
    Buffer.from(writePdf(flate).toString('latin1').replace(from, to), 'latin1')
  const forms: Record<string, Buffer> = {
    'within another one': change(/5 0 obj/, '5 0 obj\n<</A 1>>\n5 0 obj'),
    'in its dictionary': change(/EmbeddedFile\b/, 'EmbeddedFile 5 0 obj<<'),
    'with an end in its dictionary': change(/(\/Length \d+)/, '$1 endobj'),
    'within a stream that does not end': change(
      /5 0 obj/,
      '5 0 obj\n<</Filter/ASCIIHexDecode/Length 9>>\nstream\nabc\n5 0 obj',
    ),
  }
  for (const [name, content] of Object.entries(forms)) {
    test(name, async () => {
      const { given } = await tryReader(pdfReader, content)
      assert.ok(given.some(({ bytes, isSeen }) => bytes.equals(payload) && !isSeen))
    })
  }
})

test('a byte in an attachment that is no digit is a doubt: programs skip it, or take it for one', async () => {
  for (const [name, digits] of [
    ['ASCIIHexDecode', '4142\xff4344>'],
    ['ASCII85Decode', '87cUR\x7fD]i~>'],
  ] as const) {
    const content = writePdf({ dictionary: `/Filter /${name}`, data: Buffer.from(digits, 'latin1') })
    assert.deepEqual((await tryReader(pdfReader, content)).doubts, ['UnsupportedContainer'])
  }
})

describe('an attachment is given', () => {
  const forms: Record<string, { content: Buffer; isSeen?: boolean }> = {
    plain: { content: writePdf({ dictionary: '', data: payload }), isSeen: true },
    packed: { content: writePdf(flate), isSeen: true },
    'without a line end behind it': { content: writePdf({ ...flate, beforeEnd: '' }), isSeen: true },
    'in hexadecimal digits': {
      content: writePdf({ dictionary: '/Filter /ASCIIHexDecode', data: hexDigits }),
    },
    'with a dictionary before the filter': {
      content: writePdf({ ...flate, dictionary: `/Params << /Size 1 >> ${flate.dictionary}` }),
    },
    'in runs': { content: writePdf({ dictionary: '/Filter [/RL]', data: runs }) },
    'with two filters': {
      content: writePdf({
        dictionary: '/Filter [/AHx /Fl]',
        data: Buffer.from(`${deflateSync(payload).toString('hex')}>`),
      }),
    },
    'with an escaped name': { content: writePdf({ ...flate, dictionary: '/Filter /Fl#61te#44ecode' }) },
    'with a filter for encryption': {
      content: writePdf({
        ...flate,
        dictionary: '/Filter [/Crypt /FlateDecode] /DecodeParms [<< /Name /Identity >> null]',
      }),
    },
    'with a predictor of PNG': {
      content: writePdf({ dictionary: `/Filter /FlateDecode /DecodeParms ${parameters}`, data: predicted }),
    },
    'with a predictor of TIFF': {
      content: writePdf({
        dictionary: `/Filter /FlateDecode /DecodeParms << /Predictor 2 /Columns ${columns} >>`,
        data: deflateSync(tiff),
      }),
    },
    'with an indirect filter': { content: writePdf({ ...flate, dictionary: '/Filter 6 0 R' }, '[/FlateDecode]') },
    'with indirect parameters': {
      content: writePdf({ dictionary: '/Filter /FlateDecode /DecodeParms 6 0 R', data: predicted }, parameters),
    },
    'with a filter in an object stream': {
      content: writePdf(
        { ...flate, dictionary: '/Filter 7 0 R' },
        '<< /Type /ObjStm /N 1 /First 4 /Length 16 >>\nstream\n7 0 /FlateDecode\nendstream',
      ),
    },
    'with two filters that compete': {
      content: writePdf({ ...flate, dictionary: '/Filter /ASCIIHexDecode /Filter /FlateDecode' }),
    },
    'with a length that is too short': { content: writePdf({ ...flate, length: '3' }), isSeen: true },
    'with a dictionary that cannot be read': {
      content: writePdf({ ...flate, dictionary: `/Filter /FlateDecode /A )` }),
    },
    'behind 5,000 other bytes': { content: Buffer.concat([Buffer.alloc(5000, 'text\n'), writePdf(flate)]) },
  }
  for (const [name, { content, isSeen = false }] of Object.entries(forms)) {
    test(name, async () => {
      assert.ok(canHoldContent(content))
      const { given, doubts, accounted } = await tryReader(pdfReader, content)
      const found = given.find(({ bytes }) => bytes.equals(payload))
      assert.deepEqual([found?.isSeen, doubts, accounted[0]?.end], [isSeen, [], content.length])
    })
  }
})

describe('damaged streams', () => {
  test('are given up to the last byte before the damage, and leave a doubt where data follows: some programs read on', async () => {
    const stored = Buffer.from([
      0,
      payload.length & 255,
      payload.length >> 8,
      ~payload.length & 255,
      ~(payload.length >> 8) & 255,
    ])
    const start = Buffer.concat([Buffer.from([0x78, 1]), stored, payload])
    // A block of a type that does not exist.
    const damaged = Buffer.concat([start, Buffer.from([7])])
    for (const [data, wanted] of [
      [damaged, []],
      [Buffer.concat([damaged, Buffer.alloc(100, 1)]), ['UnsupportedContainer']],
      [Buffer.concat([damaged, Buffer.alloc(100_000, 1)]), ['UnsupportedContainer']],
    ] as const) {
      const { given, doubts } = await tryReader(pdfReader, writePdf({ ...flate, data }))
      assert.ok(given.some(({ bytes }) => bytes.subarray(0, payload.length - 64).equals(payload.subarray(0, -64))))
      assert.deepEqual(doubts, wanted)
    }
    assert.ok(hasMember((await tryReader(pdfReader, writePdf({ ...flate, data: damaged }))).given, payload))
  })

  test('are given whole when only their checksum is wrong', async () => {
    const data = deflateSync(payload)
    data.fill(0, data.length - 4)
    assert.ok(hasMember((await tryReader(pdfReader, writePdf({ ...flate, data }))).given, payload))
  })

  test('are a doubt when nothing of an attachment can be decoded', async () => {
    const data = Buffer.alloc(50, 'no')
    assert.deepEqual((await tryReader(pdfReader, writePdf({ ...flate, data }))).doubts, ['UnsupportedContainer'])
    const unknown = writePdf({ dictionary: '/Filter /Unknown', data })
    assert.ok((await tryReader(pdfReader, unknown)).given.some(({ bytes }) => bytes.equals(data)))
  })
})

test('text behind the end mark is not accounted for', async () => {
  const content = Buffer.concat([writePdf(flate), Buffer.from('more')])
  assert.deepEqual((await tryReader(pdfReader, content)).accounted, [{ start: 0, end: content.length - 4 }])
})

test('a PDF whose header is damaged or missing is read', async () => {
  const pdf = writePdf(flate)
  for (const content of [pdf.subarray(9), Buffer.concat([Buffer.from('%\0PDF'), pdf.subarray(5)])]) {
    assert.ok(canHoldContent(content))
    const { given } = await tryReader(pdfReader, content)
    assert.ok(given.some(({ bytes, isSeen }) => bytes.equals(payload) && !isSeen))
  }
  const text = 'An object begins with a line such as\n1 0 obj\nand ends with another one.\n'
  assert.deepEqual((await tryReader(pdfReader, text)).accounted, [])
})

test('text that only mentions the header is no PDF', async () => {
  const reading = await tryReader(pdfReader, 'The header %PDF- begins a stream.\nA stream\nof words.')
  assert.deepEqual([reading.accounted, reading.doubts, reading.given], [[], [], []])
})

describe('PDF files by qpdf', { skip: lacks('qpdf') }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-pdf-'))
  after(() => rmSync(dir, { recursive: true }))
  writeFileSync(join(dir, 'a.pdf'), writePdf(flate))
  const write = (...args: string[]) => {
    run('qpdf', ['--warning-exit-0', '--allow-weak-crypto', 'a.pdf', ...args, 'out.pdf'], { cwd: dir })
    return readFileSync(join(dir, 'out.pdf'))
  }
  const ciphers = [['40'], ['128', '--use-aes=n'], ['128', '--use-aes=y'], ['256'], ['256', '--force-R5']]

  for (const options of [[], ['--object-streams=generate'], ['--linearize'], ['--qdf']]) {
    test(`with ${options[0] ?? 'no option'}`, async () => {
      const { given, doubts } = await tryReader(pdfReader, write(...options))
      assert.ok(hasMember(given, payload))
      assert.deepEqual(doubts, [])
    })
  }
  for (const [length = '', ...more] of ciphers) {
    for (const packing of ['disable', 'generate']) {
      const encrypt = (user: string) =>
        write(`--object-streams=${packing}`, '--encrypt', user, 'owner', length, ...more, '--')
      test(`${packing} object streams, encrypted with ${length} bits ${more}: opened without a password`, async () => {
        const { given, doubts } = await tryReader(pdfReader, encrypt(''))
        assert.ok(hasMember(given, payload))
        assert.deepEqual(doubts, [])
      })
      test(`${packing} object streams, encrypted with ${length} bits ${more}: a doubt with a password`, async () => {
        assert.deepEqual((await tryReader(pdfReader, encrypt('user'))).doubts, ['EncryptedContent'])
      })
    }
  }

  test('any bytes can be read', async () => {
    // The key of 256 bits takes many rounds of hashing, so that fewer changes are tried with it.
    await fuzzReader(pdfReader, [write('--encrypt', '', 'owner', '128', '--use-aes=y', '--')], 150)
    await fuzzReader(pdfReader, [write('--encrypt', '', 'owner', '256', '--')], 50)
  })
})

test('any bytes can be read', async () => {
  const lzw = {
    dictionary: '/Filter [/A85 /LZW]',
    data: Buffer.from('J..)6T`?p&<!J9%_[umg"B7/Z7KNXbN\'S+,*Q/&"OLT\'F~>'),
  }
  const samples = [
    writePdf({ dictionary: '/Filter /FlateDecode /DecodeParms 6 0 R', data: predicted }, parameters),
    writePdf({ ...flate, dictionary: '/Filter [7 0 R]' }, '<< /Type /ObjStm /First 4 >>\nstream\n7 0 /Fl\nendstream'),
    writePdf({ dictionary: '/Filter [/RL]', data: runs }),
    writePdf(lzw),
  ]
  await fuzzReader(pdfReader, samples, 300)
})
