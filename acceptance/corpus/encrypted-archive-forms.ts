import { crc32 } from 'node:zlib'
import { newEncryptedDocx } from '../support/archives.ts'
import type { Form } from './form.ts'
import { attach, textPart, toBase64Lines, writeMail } from './mail-writer.ts'
import { type Build, formsOf, runAndRead, zipFile } from './samples.ts'

const encryptedForm = formsOf({ family: 'encrypted archives', needs: ['7z', 'zip'] })

const password = '-psecret'

const bySevenZip =
  (extension: string, ...args: string[]): Build =>
  (_payload, workdir) =>
    runAndRead(
      workdir,
      `a.${extension}`,
      '7z',
      'a',
      '-bd',
      `-t${extension}`,
      password,
      ...args,
      `a.${extension}`,
      'payload.com',
    )

const byInfoZip =
  (...args: string[]): Build =>
  (_payload, workdir) =>
    runAndRead(workdir, 'a.zip', 'zip', '-qXP', 'secret', ...args, 'a.zip', 'payload.com')

/** A zip with a member in clear, to which an encrypted one is added. */
const withClearMember: Build = (_payload, workdir) => {
  zipFile(workdir, 'clear.txt', Buffer.from('This member is not encrypted.'))
  return runAndRead(workdir, 'outer.zip', 'zip', '-qXP', 'secret', 'outer.zip', 'payload.com')
}

const number = (value: number, length: number) => {
  const bytes = Buffer.alloc(length)
  bytes.writeUIntLE(value, 0, length)
  return bytes
}

/** A zip whose member claims PKWARE's strong encryption. */
const strongZip: Build = (payload, workdir) => {
  const bytes = Buffer.from(byInfoZip('-0')(payload, workdir))
  for (const [signature, offset] of [
    ['PK\x03\x04', 6],
    ['PK\x01\x02', 8],
  ] as const) {
    const flags = bytes.indexOf(Buffer.from(signature, 'latin1')) + offset
    bytes.writeUInt16LE(bytes.readUInt16LE(flags) | 0x40, flags)
  }
  return bytes
}

const rar4Start = Buffer.from('Rar!\x1a\x07\0', 'latin1')
const rar5Start = Buffer.from('Rar!\x1a\x07\x01\0', 'latin1')

/** Writes a block of RAR 4. */
const rar4Block = (type: number, flags: number, body: Buffer, data: Buffer = Buffer.alloc(0)) => {
  const header = Buffer.concat([number(type, 1), number(flags, 2), number(7 + body.length, 2), body])
  return Buffer.concat([number(crc32(header) & 0xffff, 2), header, data])
}

/** Writes a header of RAR 5. All its numbers are below 128. */
const rar5Block = (body: Buffer, data: Buffer = Buffer.alloc(0)) => {
  const header = Buffer.concat([number(body.length, 1), body])
  return Buffer.concat([number(crc32(header), 4), header, data])
}

const salt = Buffer.from('0011223344556677')
const cipherText = Buffer.alloc(128, 0xa7)

/** RAR 4 whose file is encrypted: the flags 4 and 0x400 announce a password and a salt. */
const rar4WithPassword: Build = () => {
  const name = Buffer.from('payload.com')
  const sizes = [number(cipherText.length, 4), number(cipherText.length, 4), number(3, 1), number(0x12345678, 4)]
  const rest = [
    number(0x58210000, 4),
    number(29, 1),
    number(0x30, 1),
    number(name.length, 2),
    number(32, 4),
    name,
    salt.subarray(0, 8),
  ]
  const file = rar4Block(0x74, 0x8404, Buffer.concat([...sizes, ...rest]), cipherText)
  return Buffer.concat([rar4Start, rar4Block(0x73, 0, Buffer.alloc(6)), file, rar4Block(0x7b, 0x4000, Buffer.alloc(0))])
}

const rar4WithHiddenNames: Build = () =>
  Buffer.concat([rar4Start, rar4Block(0x73, 0x80, Buffer.alloc(6)), salt.subarray(0, 8), cipherText])

const rar5WithPassword: Build = () => {
  const name = Buffer.from('payload.com')
  // An encryption record: its size, type 1, version, flags, number of rounds, salt and vector.
  const record = Buffer.concat([Buffer.from([36, 1, 0, 0, 4]), Buffer.alloc(32, 0x5c)])
  const fields = [2, 3, record.length, 0x80, 1, 0, 0x44, 0x20, 0, 1, name.length]
  const file = rar5Block(Buffer.concat([Buffer.from(fields), name, record]), cipherText)
  return Buffer.concat([rar5Start, rar5Block(Buffer.from([1, 0, 0])), file, rar5Block(Buffer.from([5, 0, 0]))])
}

const rar5WithHiddenNames: Build = () =>
  Buffer.concat([
    rar5Start,
    rar5Block(Buffer.concat([Buffer.from([4, 0, 0, 0, 15]), Buffer.alloc(16, 0x5c)])),
    cipherText,
  ])

const byArj =
  (...args: string[]): Build =>
  (_payload, workdir) =>
    runAndRead(workdir, 'a.arj', 'arj', 'a', '-y', ...args, 'a.arj', 'payload.com')

const inTar =
  (program: string, name: string, build: Build, ...args: string[]): Build =>
  (payload, workdir) => {
    zipFile(workdir, name, build(payload, workdir))
    return runAndRead(workdir, 'outer.tar', program, ...args, '-cf', 'outer.tar', name)
  }

const attached =
  (build: Build): Build =>
  (payload, workdir) =>
    writeMail({ parts: [textPart, attach(toBase64Lines(build(payload, workdir)), 'base64')] })

/** Archives with a password. */
export const encryptedArchiveForms: Form[] = [
  encryptedForm('zip with a password', 'encrypted', {
    'traditional.zip': byInfoZip(),
    'traditional-stored.zip': byInfoZip('-0'),
    'traditional-by-7z.zip': bySevenZip('zip', '-mem=ZipCrypto'),
    'traditional-lzma.zip': bySevenZip('zip', '-mem=ZipCrypto', '-mm=LZMA'),
    'one-member-of-two.zip': withClearMember,
    'strong.zip': strongZip,
  }),
  encryptedForm('zip with AES', 'encrypted', {
    'aes-128.zip': bySevenZip('zip', '-mem=AES128'),
    'aes-192.zip': bySevenZip('zip', '-mem=AES192'),
    'aes-256.zip': bySevenZip('zip', '-mem=AES256'),
    'aes-ppmd.zip': bySevenZip('zip', '-mem=AES256', '-mm=PPMd'),
    'aes-stored.zip': bySevenZip('zip', '-mem=AES256', '-mx=0'),
  }),
  encryptedForm('7z with a password', 'encrypted', {
    'lzma2.7z': bySevenZip('7z'),
    'stored.7z': bySevenZip('7z', '-mx=0'),
    'ppmd.7z': bySevenZip('7z', '-m0=PPMd'),
  }),
  encryptedForm('7z with hidden names', 'encrypted', {
    'lzma2.7z': bySevenZip('7z', '-mhe=on'),
    'stored.7z': bySevenZip('7z', '-mhe=on', '-mx=0'),
  }),
  encryptedForm(
    'RAR with a password',
    'encrypted',
    { 'rar4.rar': rar4WithPassword, 'rar5.rar': rar5WithPassword },
    { needs: [] },
  ),
  encryptedForm(
    'RAR with hidden names',
    'encrypted',
    { 'rar4.rar': rar4WithHiddenNames, 'rar5.rar': rar5WithHiddenNames },
    { needs: [] },
  ),
  encryptedForm(
    'ARJ with a password',
    'encrypted',
    { 'garbled.arj': byArj('-gsecret'), 'stored.arj': byArj('-m0', '-gsecret') },
    { needs: ['arj'] },
  ),
  encryptedForm(
    'archive with a password in another container',
    'encrypted',
    {
      'zip-in.tar': inTar('tar', 'inner.zip', bySevenZip('zip', '-mem=AES256')),
      'zip-in.tar.gz': inTar('tar', 'inner.zip', byInfoZip(), '-z'),
      '7z-in.tar': inTar('tar', 'inner.7z', bySevenZip('7z', '-mhe=on')),
      '7z-in.zip': (payload, workdir) => zipFile(workdir, 'inner.7z', bySevenZip('7z')(payload, workdir)),
      'zip-in.zip': (payload, workdir) => zipFile(workdir, 'inner.zip', byInfoZip()(payload, workdir)),
      'rar-in.zip': (payload, workdir) => zipFile(workdir, 'inner.rar', rar5WithHiddenNames(payload, workdir)),
      'zip.eml': attached(byInfoZip()),
      '7z.eml': attached(bySevenZip('7z')),
    },
    { needs: ['7z', 'zip', 'tar'] },
  ),
  encryptedForm(
    'OOXML with a password',
    'encrypted',
    {
      'agile.docx': () => newEncryptedDocx(),
      'in.zip': (_payload, workdir) => zipFile(workdir, 'a.docx', newEncryptedDocx()),
      'attached.eml': attached(() => newEncryptedDocx()),
    },
    { needs: ['zip'] },
  ),
]
