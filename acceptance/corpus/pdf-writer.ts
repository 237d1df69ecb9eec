import { deflateSync } from 'node:zlib'

/** An object of a PDF: its text, or a stream with the text of its dictionary. */
export type PdfObject = string | { dictionary: string; data: Buffer; beforeEnd?: string; length?: string }

const page = ['<< /Type /Pages /Kids [3 0 R] /Count 1 >>', '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] >>']

function writeObject(object: PdfObject, number: number): Buffer {
  const start = `${number} 0 obj\n`
  if (typeof object === 'string') return Buffer.from(`${start}${object}\nendobj\n`, 'latin1')
  const { dictionary, data, beforeEnd = '\n', length = String(data.length) } = object
  const head = `${start}<< ${dictionary} /Length ${length} >>\nstream\n`
  return Buffer.concat([Buffer.from(head, 'latin1'), data, Buffer.from(`${beforeEnd}endstream\nendobj\n`, 'latin1')])
}

/** Writes a PDF with objects that are numbered from 1. `junk` stands before the header, and offsets do not count it. */
export function writePdf(objects: PdfObject[], { junk = '', hasTable = true, version = '1.7' } = {}): Buffer {
  const parts: Buffer[] = [Buffer.from(`%PDF-${version}\n%\xe2\xe3\xcf\xd3\n`, 'latin1')]
  const offsets: number[] = []
  for (const [n, object] of objects.entries()) {
    offsets.push(Buffer.concat(parts).length)
    parts.push(writeObject(object, n + 1))
  }
  const start = Buffer.concat(parts).length
  const rows = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`)
  const table = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows.join('')}`
  const trailer = `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${hasTable ? start : 0}\n%%EOF\n`
  parts.push(Buffer.from(`${hasTable ? table : ''}${trailer}`, 'latin1'))
  return Buffer.concat([Buffer.from(junk, 'latin1'), ...parts])
}

/** Objects of a PDF that has one attachment. More objects follow as number 6 and so on. */
export function attachToPdf(stream: PdfObject, ...more: PdfObject[]): PdfObject[] {
  const names = '/Names << /EmbeddedFiles << /Names [(payload.com) 4 0 R] >> >>'
  return [
    `<< /Type /Catalog /Pages 2 0 R ${names} >>`,
    ...page,
    '<< /Type /Filespec /F (payload.com) /UF (payload.com) /EF << /F 5 0 R /UF 5 0 R >> >>',
    stream,
    ...more,
  ]
}

/** Objects of a PDF whose attachment hangs on a note of its page. */
export const annotatePdf = (stream: PdfObject): PdfObject[] => [
  '<< /Type /Catalog /Pages 2 0 R >>',
  '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
  '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Annots [6 0 R] >>',
  '<< /Type /Filespec /F (payload.com) /UF (payload.com) /EF << /F 5 0 R >> >>',
  stream,
  '<< /Type /Annot /Subtype /FileAttachment /Rect [9 9 30 30] /FS 4 0 R /Contents (payload.com) >>',
]

const embedded = '/Type /EmbeddedFile'

export const embed = (data: Buffer, more = ''): Exclude<PdfObject, string> => ({
  dictionary: `${embedded} ${more}`,
  data,
})

/** Encoders of the filters that a PDF may name. */
export const filters: Record<string, (bytes: Buffer) => Buffer> = {
  FlateDecode: (bytes) => deflateSync(bytes),
  ASCIIHexDecode: (bytes) => Buffer.from(`${bytes.toString('hex')}>`),
  ASCII85Decode: encodeAscii85,
  LZWDecode: encodeLzw,
  RunLengthDecode: (bytes) =>
    Buffer.concat([
      ...Array.from({ length: Math.ceil(bytes.length / 128) }, (_, n) => {
        const piece = bytes.subarray(n * 128, n * 128 + 128)
        return Buffer.concat([Buffer.from([piece.length - 1]), piece])
      }),
      Buffer.from([128]),
    ]),
}

function encodeAscii85(bytes: Buffer): Buffer {
  let text = ''
  for (let start = 0; start < bytes.length; start += 4) {
    const piece = Buffer.alloc(4)
    const length = bytes.copy(piece, 0, start, start + 4)
    let value = piece.readUInt32BE()
    let digits = ''
    for (let n = 0; n < 5; n++, value = Math.floor(value / 85)) digits = String.fromCharCode(33 + (value % 85)) + digits
    text += value === 0 && digits === '!!!!!' && length === 4 ? 'z' : digits.slice(0, length + 1)
  }
  return Buffer.from(`${text}~>`)
}

/** Writes codes of 9 bits and clears the table before they would need 10. */
function encodeLzw(bytes: Buffer): Buffer {
  const clear = 256
  const end = 257
  const codes = [...bytes].flatMap((byte, n) => (n % 200 === 0 ? [clear, byte] : [byte]))
  const bits = [...codes, end].map((code) => code.toString(2).padStart(9, '0')).join('')
  return Buffer.from((bits.match(/.{1,8}/g) ?? []).map((group) => Number.parseInt(group.padEnd(8, '0'), 2)))
}

/** Applies a PNG predictor to rows of `columns` bytes. `kind` is the filter type that each row names. */
export function predictRows(bytes: Buffer, columns: number, kind: number): Buffer {
  const rows: Buffer[] = []
  for (let start = 0; start < bytes.length; start += columns) {
    const row = [...bytes.subarray(start, start + columns)].map((byte, n) => {
      const left = n > 0 ? (bytes[start + n - 1] ?? 0) : 0
      const up = start > 0 ? (bytes[start + n - columns] ?? 0) : 0
      const corner = n > 0 && start > 0 ? (bytes[start + n - columns - 1] ?? 0) : 0
      return byte - ([0, left, up, (left + up) >> 1, choosePaeth(left, up, corner)][kind] ?? 0)
    })
    rows.push(Buffer.from([kind, ...row]))
  }
  return Buffer.concat(rows)
}

function choosePaeth(left: number, up: number, corner: number): number {
  const estimate = left + up - corner
  const [toLeft, toUp, toCorner] = [left, up, corner].map((value) => Math.abs(estimate - value)) as [
    number,
    number,
    number,
  ]
  if (toLeft <= toUp && toLeft <= toCorner) return left
  return toUp <= toCorner ? up : corner
}
