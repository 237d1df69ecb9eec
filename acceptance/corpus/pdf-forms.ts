import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Form } from './form.ts'
import { annotatePdf, attachToPdf, embed, filters, type PdfObject, predictRows, writePdf } from './pdf-writer.ts'
import { type Build, formsOf, runAndRead, zipFile } from './samples.ts'

const pdfForm = formsOf({ family: 'pdf', needs: [], extractors: ['qpdf', 'pdfdetach'] })

const byQpdf =
  (...args: string[]): Build =>
  (_payload, workdir) => {
    writeFileSync(join(workdir, 'empty.pdf'), writePdf(attachToPdf('null').slice(0, 3).map(withoutNames)))
    const attachment = ['--add-attachment', 'payload.com', '--']
    return runAndRead(workdir, 'out.pdf', 'qpdf', '--warning-exit-0', 'empty.pdf', ...attachment, ...args, 'out.pdf')
  }

const withoutNames = (object: PdfObject) => (typeof object === 'string' ? object.replace(/\/Names.*>>/, '>>') : object)

const encode = (payload: Buffer, ...names: string[]) =>
  names.reduceRight((bytes, name) => filters[name]?.(bytes) ?? bytes, payload)

const withFilters =
  (...names: string[]): Build =>
  (payload) => {
    const list = names.map((name) => `/${name}`).join(' ')
    return writePdf(attachToPdf(embed(encode(payload, ...names), `/Filter [${list}]`)))
  }

const flate = (payload: Buffer) => encode(payload, 'FlateDecode')

const withPredictor =
  (predictor: number, kind: number): Build =>
  (payload) => {
    const columns = payload.length / 4
    const parameters = `/DecodeParms << /Predictor ${predictor} /Columns ${columns} >>`
    return writePdf(
      attachToPdf(embed(flate(predictRows(payload, columns, kind)), `/Filter /FlateDecode ${parameters}`)),
    )
  }

/** TIFF's predictor stores the difference to the byte on the left. */
const withTiffPredictor: Build = (payload) => {
  const columns = payload.length / 4
  const rows = Buffer.from(payload.map((byte, n) => (n % columns === 0 ? byte : byte - (payload[n - 1] ?? 0))))
  return writePdf(
    attachToPdf(embed(flate(rows), `/Filter /FlateDecode /DecodeParms << /Predictor 2 /Columns ${columns} >>`)),
  )
}

const withJunk =
  (junk: string): Build =>
  (payload) =>
    writePdf(attachToPdf(embed(flate(payload), '/Filter /FlateDecode')), { junk })

/** A PDF without attachment, to which a later revision adds one. */
const updated: Build = (payload) => {
  const objects = attachToPdf(embed(flate(payload), '/Filter /FlateDecode'))
  const first = writePdf(objects.slice(0, 3).map(withoutNames))
  const whole = writePdf(objects, { hasTable: false }).toString('latin1')
  const catalog = whole.slice(whole.indexOf('1 0 obj'), whole.indexOf('2 0 obj'))
  const added = whole.slice(whole.indexOf('4 0 obj'), whole.indexOf('trailer'))
  const revision = `${catalog}${added}`
  const place = (number: number) => String(first.length + revision.indexOf(`${number} 0 obj`)).padStart(10, '0')
  const table = `xref\n1 1\n${place(1)} 00000 n \n4 2\n${place(4)} 00000 n \n${place(5)} 00000 n \n`
  const previous = /startxref\n(\d+)/.exec(first.toString('latin1'))?.[1]
  const trailer = `trailer\n<< /Size 6 /Root 1 0 R /Prev ${previous} >>\nstartxref\n${first.length + revision.length}\n%%EOF\n`
  return Buffer.concat([first, Buffer.from(`${revision}${table}${trailer}`, 'latin1')])
}

const encryptions: Record<string, string[]> = {
  'rc4-40.pdf': ['--allow-weak-crypto', '40'],
  'rc4-128.pdf': ['--allow-weak-crypto', '128', '--use-aes=n'],
  'aes-128.pdf': ['--allow-weak-crypto', '128', '--use-aes=y'],
  'aes-256.pdf': ['256'],
  'aes-256-older.pdf': ['--allow-weak-crypto', '256', '--force-R5'],
  'clear-metadata.pdf': ['256', '--cleartext-metadata'],
}

const eachEncryption = (user: string): Record<string, Build> =>
  Object.fromEntries(
    Object.entries(encryptions).map(([name, options]) => {
      const isWeak = options[0] === '--allow-weak-crypto'
      const [length = '256', ...more] = isWeak ? options.slice(1) : options
      const args = ['--encrypt', user, 'owner', length, ...more, '--']
      return [name, byQpdf(...(isWeak ? ['--allow-weak-crypto'] : []), ...args)]
    }),
  )

const withQpdf = { needs: ['qpdf'] }

/** A PDF without a table, in which the beginning of the attached stream is another one. */
const changed = (replacement: string) => (payload: Buffer) => {
  const pdf = writePdf(attachToPdf(embed(flate(payload), '/Filter /FlateDecode')), { hasTable: false })
  const begin = /(\d+) 0 obj\n(<<([^>]*?\/EmbeddedFile\b))/
  return Buffer.from(pdf.toString('latin1').replace(begin, replacement), 'latin1')
}

/** PDF files with an attachment. */
export const pdfForms: Form[] = [
  pdfForm(
    'PDF by qpdf',
    'opened',
    {
      'usual.pdf': byQpdf(),
      'object-streams.pdf': byQpdf('--object-streams=generate'),
      'readable.pdf': byQpdf('--qdf'),
      'uncompressed.pdf': byQpdf('--stream-data=uncompress'),
      'linear.pdf': byQpdf('--linearize'),
      'linear-object-streams.pdf': byQpdf('--linearize', '--object-streams=generate'),
      'newline-before-end.pdf': byQpdf('--newline-before-endstream'),
      'version-1.4.pdf': byQpdf('--force-version=1.4', '--object-streams=disable'),
    },
    withQpdf,
  ),
  pdfForm('PDF with an owner password only', 'opened', eachEncryption(''), withQpdf),
  pdfForm('PDF with each filter', 'opened', {
    ...Object.fromEntries(Object.keys(filters).map((name) => [`${name}.pdf`, withFilters(name)])),
    'none.pdf': (payload) => writePdf(attachToPdf(embed(payload))),
  }),
  pdfForm('PDF with a chain of filters', 'opened', {
    'hex-flate.pdf': withFilters('ASCIIHexDecode', 'FlateDecode'),
    '85-flate.pdf': withFilters('ASCII85Decode', 'FlateDecode'),
    '85-lzw.pdf': withFilters('ASCII85Decode', 'LZWDecode'),
    'hex-run-length.pdf': withFilters('ASCIIHexDecode', 'RunLengthDecode'),
    'flate-flate.pdf': withFilters('FlateDecode', 'FlateDecode'),
    'hex-85-flate.pdf': withFilters('ASCIIHexDecode', 'ASCII85Decode', 'FlateDecode'),
    'hex-hex-85-lzw-flate.pdf': withFilters(
      'ASCIIHexDecode',
      'ASCIIHexDecode',
      'ASCII85Decode',
      'LZWDecode',
      'FlateDecode',
    ),
  }),
  pdfForm('PDF with a predictor', 'opened', {
    'none.pdf': withPredictor(10, 0),
    'left.pdf': withPredictor(11, 1),
    'up.pdf': withPredictor(12, 2),
    'average.pdf': withPredictor(13, 3),
    'paeth.pdf': withPredictor(14, 4),
    'optimum.pdf': withPredictor(15, 2),
    'tiff.pdf': withTiffPredictor,
  }),
  pdfForm('PDF with indirect values', 'opened', {
    'filter.pdf': (payload) => writePdf(attachToPdf(embed(flate(payload), '/Filter 6 0 R'), '/FlateDecode')),
    'filter-list.pdf': (payload) => writePdf(attachToPdf(embed(flate(payload), '/Filter 6 0 R'), '[/FlateDecode]')),
    'filter-in-list.pdf': (payload) => writePdf(attachToPdf(embed(flate(payload), '/Filter [6 0 R]'), '/FlateDecode')),
    'length.pdf': (payload) =>
      writePdf(
        attachToPdf(
          { ...embed(flate(payload), '/Filter /FlateDecode'), length: '6 0 R' },
          String(flate(payload).length),
        ),
      ),
    'parameters.pdf': (payload) => {
      const columns = payload.length / 4
      const stream = embed(flate(predictRows(payload, columns, 2)), '/Filter /FlateDecode /DecodeParms 6 0 R')
      return writePdf(attachToPdf(stream, `<< /Predictor 12 /Columns ${columns} >>`))
    },
  }),
  pdfForm('PDF with a name in escapes', 'reported', {
    'escaped-name.pdf': (payload) => writePdf(attachToPdf(embed(flate(payload), '/Filter /Fl#61te#44ecode'))),
  }),
  pdfForm('PDF with the filter Crypt', 'ambiguous', {
    'identity.pdf': (payload) =>
      writePdf(
        attachToPdf(embed(flate(payload), '/Filter [/Crypt /FlateDecode] /DecodeParms [<< /Name /Identity >> null]')),
      ),
    'default.pdf': (payload) => writePdf(attachToPdf(embed(flate(payload), '/Filter [/Crypt /FlateDecode]'))),
    'alone.pdf': (payload) =>
      writePdf(attachToPdf(embed(payload, '/Filter /Crypt /DecodeParms << /Name /Identity >>'))),
  }),
  pdfForm('PDF with unusual stream ends', 'ambiguous', {
    'no-newline.pdf': (payload) =>
      writePdf(attachToPdf({ ...embed(flate(payload), '/Filter /FlateDecode'), beforeEnd: '' })),
    'no-newline-unpacked.pdf': (payload) => writePdf(attachToPdf({ ...embed(payload), beforeEnd: '' })),
    'carriage-return.pdf': (payload) =>
      writePdf(attachToPdf({ ...embed(flate(payload), '/Filter /FlateDecode'), beforeEnd: '\r' })),
    'too-long.pdf': (payload) =>
      writePdf(attachToPdf({ ...embed(flate(payload), '/Filter /FlateDecode'), length: '9999' })),
    'too-short.pdf': (payload) =>
      writePdf(attachToPdf({ ...embed(flate(payload), '/Filter /FlateDecode'), length: '3' })),
    'no-length.pdf': (payload) =>
      writePdf(attachToPdf({ ...embed(flate(payload), '/Filter /FlateDecode'), length: 'null' })),
  }),
  pdfForm('PDF behind other bytes', 'ambiguous', {
    '20-bytes.pdf': withJunk('A line of text here\n'),
    '900-bytes.pdf': withJunk(`${'A line of text here\n'.repeat(45)}`),
    '4-kilobytes.pdf': withJunk('A line of text here\n'.repeat(205)),
    '40-kilobytes.pdf': withJunk('A line of text here\n'.repeat(2048)),
    'zeros.pdf': withJunk('\0'.repeat(512)),
    'gif.pdf': withJunk('GIF89a\x01\0\x01\0\0\0\0'),
  }),
  pdfForm('PDF with damaged or several tables', 'ambiguous', {
    'no-table.pdf': (payload) =>
      writePdf(attachToPdf(embed(flate(payload), '/Filter /FlateDecode')), { hasTable: false }),
    'updated.pdf': updated,
    'version-9.pdf': (payload) => writePdf(attachToPdf(embed(payload)), { version: '9.9' }),
    'text-after.pdf': (payload) =>
      Buffer.concat([writePdf(attachToPdf(embed(payload))), Buffer.from('text after the end\n')]),
  }),
  pdfForm('PDF with an object that begins twice', 'ambiguous', {
    'twice.pdf': changed('$1 0 obj $1 0 obj\n$2'),
    'within-another.pdf': changed('$1 0 obj\n<</A 1>>\n$1 0 obj\n$2'),
    'within-a-stream.pdf': changed('$1 0 obj\n<</Filter/ASCIIHexDecode/Length 9>>\nstream\nabc\n$1 0 obj\n$2'),
    'end-in-its-dictionary.pdf': changed('$1 0 obj\n<< endobj $3'),
  }),
  pdfForm(
    'PDF with other places of an attachment',
    'opened',
    {
      'note.pdf': (payload) => writePdf(annotatePdf(embed(flate(payload), '/Filter /FlateDecode'))),
      'packed.pdf': (payload, workdir) => writePdf(attachToPdf(embed(zipFile(workdir, 'inner.com', payload)))),
      'pdf-in.pdf': (payload) =>
        writePdf(attachToPdf(embed(flate(writePdf(attachToPdf(embed(payload)))), '/Filter /FlateDecode'))),
      'in.zip': (payload, workdir) =>
        zipFile(workdir, 'a.pdf', writePdf(attachToPdf(embed(flate(payload), '/Filter /FlateDecode')))),
    },
    { needs: ['zip'], extractors: ['qpdf', 'pdfdetach', 'pdfdetach and 7z', 'unzip and pdfdetach'] },
  ),
]

/** PDF files that need a password to be opened. */
export const encryptedPdfForms: Form[] = [
  pdfForm('PDF with a user password', 'encrypted', eachEncryption('user'), withQpdf),
  pdfForm(
    'PDF with a user password, in another container',
    'encrypted',
    {
      'in.zip': (payload, workdir) =>
        zipFile(workdir, 'a.pdf', byQpdf('--encrypt', 'user', 'owner', '256', '--')(payload, workdir)),
      'in.pdf': (payload, workdir) =>
        writePdf(attachToPdf(embed(byQpdf('--encrypt', 'user', 'owner', '256', '--')(payload, workdir)))),
    },
    { needs: ['qpdf', 'zip'] },
  ),
]
