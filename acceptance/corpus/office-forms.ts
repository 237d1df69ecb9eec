import { deflateSync } from 'node:zlib'
import { newZip } from '../support/archives.ts'
import type { Form } from './form.ts'
import { breakLines, toBase64Lines } from './mail-writer.ts'
import { type Build, formsOf } from './samples.ts'

const officeForm = formsOf({ family: 'office', needs: [], extractors: ['python content'] })

const contentTypes = {
  name: '[Content_Types].xml',
  data: '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="bin" ContentType="application/octet-stream"/></Types>',
}

/** An OOXML document with one more part. */
const newOoxml =
  (folder: string, part: string): Build =>
  (payload) =>
    newZip([
      contentTypes,
      { name: `${folder}/document.xml`, data: '<document/>' },
      { name: `${folder}/${part}`, data: payload },
    ])

const newOdf =
  (type: string, part: string, manifest = ''): Build =>
  (payload) =>
    newZip([
      { name: 'mimetype', data: `application/vnd.oasis.opendocument.${type}` },
      { name: 'content.xml', data: '<document-content/>' },
      { name: part, data: payload },
      {
        name: 'META-INF/manifest.xml',
        data: `<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">${manifest}</manifest:manifest>`,
      },
    ])

const number = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

const withLength = (text: string) => Buffer.concat([number(text.length + 1), Buffer.from(`${text}\0`)])

/** A document of Word 2003 as XML, with data in base64. */
const newWordXml = (data: Buffer) =>
  Buffer.from(
    `<?xml version="1.0"?>\n<?mso-application progid="Word.Document"?>\n<w:wordDocument xmlns:w="http://schemas.microsoft.com/office/word/2003/wordml"><w:binData w:name="editdata.mso">${toBase64Lines(data)}</w:binData></w:wordDocument>\n`,
  )

/** The container in which Office keeps macros beside XML and web pages. */
function newActiveMime(data: Buffer): Buffer {
  const head = Buffer.concat([Buffer.from('ActiveMime'), Buffer.from([0, 0, 1, 0xf0, 4, 0, 0, 0]), Buffer.alloc(32)])
  head.writeUInt16LE(head.length - 46, 30)
  return Buffer.concat([head, deflateSync(data)])
}

/** A file as the object packager of Windows stores it, in the format of OLE 1. */
function newPackage(payload: Buffer): Buffer {
  const names = [Buffer.from([2, 0]), Buffer.from('payload.com\0C:\\payload.com\0'), Buffer.from([0, 0, 3, 0])]
  const native = Buffer.concat([...names, withLength('C:\\payload.com'), number(payload.length), payload])
  const header = [number(0x0501), number(2), withLength('Package'), number(0), number(0)]
  return Buffer.concat([...header, number(native.length), native])
}

const newRtf =
  (encode: (hex: string) => string): Build =>
  (payload) =>
    Buffer.from(
      `{\\rtf1\\ansi A text{\\object\\objemb{\\*\\objclass Package}{\\*\\objdata ${encode(newPackage(payload).toString('hex'))}}}\\par}`,
    )

const encryption =
  '<manifest:file-entry manifest:full-path="content.xml" manifest:size="9"><manifest:encryption-data manifest:checksum-type="SHA1/1K" manifest:checksum="a"><manifest:algorithm manifest:algorithm-name="Blowfish CFB" manifest:initialisation-vector="YQ=="/></manifest:encryption-data></manifest:file-entry>'

/** Part of a document that stands for one that a password protects. */
const cipherText = Buffer.alloc(128, 0xa7)

/** Office documents. */
export const officeForms: Form[] = [
  officeForm('OOXML with an embedded file', 'opened', {
    'object.docx': newOoxml('word', 'embeddings/oleObject1.bin'),
    'object.xlsx': newOoxml('xl', 'embeddings/oleObject1.bin'),
    'object.pptx': newOoxml('ppt', 'embeddings/oleObject1.bin'),
    'picture.docx': newOoxml('word', 'media/image1.png'),
    'chunk.docx': newOoxml('word', 'afchunk.dat'),
  }),
  officeForm('ODF with an embedded file', 'opened', {
    'object.odt': newOdf('text', 'Object 1'),
    'picture.ods': newOdf('spreadsheet', 'Pictures/1.png'),
    'script.odp': newOdf('presentation', 'Scripts/python/a.py'),
  }),
  officeForm('office document as one XML file', 'ambiguous', {
    'flat.fodt': (payload) =>
      Buffer.from(
        `<?xml version="1.0"?>\n<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"><office:binary-data>\n${toBase64Lines(payload)}\n</office:binary-data></office:document>\n`,
      ),
    'word.xml': (payload) => newWordXml(payload),
    'macros.xml': (payload) => newWordXml(newActiveMime(payload)),
    'macros.mso': (payload) => newActiveMime(payload),
    'package.xml': (payload) =>
      Buffer.from(
        `<?xml version="1.0"?>\n<pkg:package xmlns:pkg="http://schemas.microsoft.com/office/2006/xmlPackage"><pkg:part pkg:name="/word/a.bin"><pkg:binaryData>${toBase64Lines(payload)}</pkg:binaryData></pkg:part></pkg:package>\n`,
      ),
  }),
  officeForm('RTF with an embedded file', 'ambiguous', {
    'lines.rtf': newRtf((hex) => breakLines(hex, 64)),
    'one-line.rtf': newRtf((hex) => hex),
    'upper-case.rtf': newRtf((hex) => hex.toUpperCase()),
    'blanks.rtf': newRtf((hex) => breakLines(hex, 2).replaceAll('\n', ' ')),
  }),
]

/** Office documents with a password. */
export const encryptedOfficeForms: Form[] = [
  officeForm('ODF with a password', 'encrypted', {
    'text.odt': (_payload, workdir) => newOdf('text', 'Object 1', encryption)(cipherText, workdir),
    'sheet.ods': (_payload, workdir) => newOdf('spreadsheet', 'Object 1', encryption)(cipherText, workdir),
  }),
]
