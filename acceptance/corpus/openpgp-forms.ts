import { randomBytes } from 'node:crypto'
import { deflateRawSync, deflateSync } from 'node:zlib'
import type { Form } from './form.ts'
import { attach, crlf, textPart, toBase64Lines, writeMail, writeSinglePart } from './mail-writer.ts'
import { type Framing, framings, passphrase, runGpgOnPayload, writeLiteral, writePacket } from './openpgp-tools.ts'
import { type Build, formsOf, runAndRead, zipFile } from './samples.ts'
import { run } from './tools.ts'

const gpgForm = formsOf({ family: 'openpgp', needs: ['gpg'], extractors: ['gpg', 'munpack and gpg'] })

const byGpg =
  (...args: string[]): Build =>
  (_payload, workdir) =>
    runGpgOnPayload(workdir, ...args)

const withPassphrase = (...args: string[]) => byGpg(...passphrase, '-c', ...args)
const withKey = (...args: string[]) => byGpg('-r', 'ann@example.org', '-e', ...args)
const encrypted = (workdir: string) => runGpgOnPayload(workdir, '-r', 'ann@example.org', '-e')
const armoured = (workdir: string) => runGpgOnPayload(workdir, '-r', 'ann@example.org', '-e', '-a').toString()

const literalTag = 11
const compressedTag = 8
const zip = 1
const zlib = 2

/** Literal packets of 200 bytes and more have room for each framing. Blanks after EICAR do not change it. */
const longLiteral = (payload: Buffer) => writeLiteral(payload, 'b', 'a-name-that-is-long-enough'.padEnd(140, '-'))

/** Random bytes in place of encrypted data, which nobody can decrypt anyway. */
const ciphertext = randomBytes(220)

/** Makes a sample for each way to write the length of a packet. */
const eachFraming = (write: (payload: Buffer, framing: Framing) => Buffer): Record<string, Build> =>
  Object.fromEntries(framings.map((framing) => [`${framing}.gpg`, (payload: Buffer) => write(payload, framing)]))

const compress = (algorithm: number, packets: Buffer) =>
  Buffer.concat([Buffer.from([algorithm]), algorithm === zip ? deflateRawSync(packets) : deflateSync(packets)])

/** A signature of a version, a type and algorithms that are known, without any value. */
const signature = Buffer.from([4, 0, 22, 10, 0, 0, 0, 0, 1, 2, 3, 4])

/** Literal data behind other packets. */
const behind = (packets: Buffer) => (payload: Buffer) =>
  Buffer.concat([packets, writePacket(literalTag, writeLiteral(payload), 'new-1')])

const padded = (body: Buffer) => Buffer.concat([body, Buffer.alloc(9)])

const armour = (packets: Buffer) =>
  Buffer.from(`-----BEGIN PGP SIGNATURE-----\n\n${toBase64Lines(packets)}\n-----END PGP SIGNATURE-----\n`)

const sqCertificate = (workdir: string) => {
  run('sq', ['key', 'generate', '-u', 'ann@example.org', '--export', 'key.pgp'], { cwd: workdir })
  return 'key.pgp'
}

const bySq =
  (...args: string[]): Build =>
  (_payload, workdir) => {
    const key = sqCertificate(workdir)
    const named = args[0] === 'encrypt' ? ['--recipient-cert', key] : ['--signer-key', key]
    return runAndRead(workdir, 'out', 'sq', ...args, ...named, '-o', 'out', 'payload.com')
  }

const inMail = (body: string, eol?: string) => writeSinglePart({ headers: ['Content-Type: text/plain'], body }, eol)

const pgpMime: Build = (_payload, workdir) =>
  writeMail({
    contentType: 'multipart/encrypted; protocol="application/pgp-encrypted"; boundary=frontier',
    parts: [
      { headers: ['Content-Type: application/pgp-encrypted'], body: 'Version: 1' },
      { headers: ['Content-Type: application/octet-stream; name="encrypted.asc"'], body: armoured(workdir) },
    ],
  })

/** Encrypted OpenPGP. */
export const encryptedOpenpgpForms: Form[] = [
  gpgForm('OpenPGP with a passphrase', 'encrypted', {
    'binary.gpg': withPassphrase(),
    'armoured.asc': withPassphrase('-a'),
    '3des.gpg': withPassphrase('--cipher-algo', '3DES'),
    'camellia.gpg': withPassphrase('--cipher-algo', 'CAMELLIA256'),
    'simple-key.gpg': withPassphrase('--s2k-mode', '0'),
    'salted-key.gpg': withPassphrase('--s2k-mode', '1'),
    'uncompressed.gpg': withPassphrase('-z', '0'),
  }),
  gpgForm('OpenPGP for a key', 'encrypted', {
    'binary.gpg': withKey(),
    'armoured.asc': withKey('-a'),
    'hidden-recipient.gpg': withKey('--throw-keyids'),
    'signed.gpg': withKey('-s'),
    'with-passphrase.gpg': byGpg(...passphrase, '-c', '-e', '-r', 'ann@example.org'),
  }),
  gpgForm(
    'OpenPGP for a key, by Sequoia',
    'encrypted',
    {
      'binary.pgp': bySq('encrypt', '-B'),
      'armoured.pgp': bySq('encrypt'),
      'padded.pgp': bySq('encrypt', '-B', '--compression', 'zlib'),
    },
    { needs: ['sq'] },
  ),
  gpgForm('OpenPGP encrypted packets, each way to write a length', 'encrypted', {
    ...eachFraming((_payload, framing) => {
      const session = writePacket(3, Buffer.from([4, 9, 3, 8, 1, 2, 3, 4, 5, 6, 7, 8, 96]), 'old-1')
      // The old framing has four bits for the tag, so that it can only carry data without integrity protection.
      const packet = framing.startsWith('old')
        ? writePacket(9, ciphertext, framing)
        : writePacket(18, Buffer.concat([Buffer.from([1]), ciphertext]), framing === 'new-1' ? 'new-2' : framing)
      return Buffer.concat([session, packet])
    }),
    'without-session-key.gpg': () => writePacket(9, ciphertext, 'old-1'),
    'marker-first.gpg': (_payload, workdir) =>
      Buffer.concat([writePacket(10, Buffer.from('PGP'), 'old-1'), encrypted(workdir)]),
  }),
  gpgForm('OpenPGP encrypted text in mail', 'encrypted', {
    'inline.eml': (_payload, workdir) => inMail(armoured(workdir)),
    'after-text.eml': (_payload, workdir) => inMail(`Dear Ben,\n\nthe report:\n\n${armoured(workdir)}\n\nAnn\n`),
    'lf.eml': (_payload, workdir) => inMail(armoured(workdir), '\n'),
    'mime.eml': pgpMime,
    'attached.eml': (_payload, workdir) => {
      return writeMail({ parts: [textPart, attach(toBase64Lines(encrypted(workdir)), 'base64')] })
    },
  }),
  gpgForm('OpenPGP encrypted text, unusual armour', 'encrypted', {
    'crlf.asc': (_payload, workdir) => Buffer.from(armoured(workdir).replaceAll('\n', crlf)),
    'text-before.txt': (_payload, workdir) => Buffer.from(`Dear Ben,\n\nthe report:\n\n${armoured(workdir)}`),
    'headers.asc': (_payload, workdir) =>
      Buffer.from(
        armoured(workdir).replace('\n\n', '\nVersion: GnuPG v2\nComment: https://gnupg.org\nCharset: utf-8\n\n'),
      ),
    'empty-lines-before.asc': (_payload, workdir) => Buffer.from(`\n\n\n${armoured(workdir)}`),
    'no-checksum.asc': (_payload, workdir) => Buffer.from(armoured(workdir).replace(/\n=.{4}\n/, '\n')),
  }),
  gpgForm(
    'OpenPGP encrypted file in an archive',
    'encrypted',
    {
      'gpg.zip': (_payload, workdir) => zipFile(workdir, 'a.gpg', runGpgOnPayload(workdir, ...passphrase, '-c')),
      'asc.zip': (_payload, workdir) => zipFile(workdir, 'a.asc', Buffer.from(armoured(workdir))),
      'key.zip': (_payload, workdir) =>
        zipFile(workdir, 'a.bin', runGpgOnPayload(workdir, '-r', 'ann@example.org', '-e')),
    },
    { needs: ['gpg', 'zip'] },
  ),
]

/** OpenPGP that holds its content in clear. */
export const openpgpForms: Form[] = [
  gpgForm('OpenPGP literal data', 'opened', {
    'uncompressed.gpg': byGpg('--store', '-z', '0'),
    'zip.gpg': byGpg('--store', '--compress-algo', 'zip'),
    'zlib.gpg': byGpg('--store', '--compress-algo', 'zlib'),
    'bzip2.gpg': byGpg('--store', '--compress-algo', 'bzip2'),
    'armoured.asc': byGpg('--store', '-a'),
    'text.gpg': byGpg('--store', '-t'),
  }),
  gpgForm('OpenPGP signed data', 'opened', {
    'signed.gpg': byGpg('-s'),
    'armoured.asc': byGpg('-s', '-a'),
    'uncompressed.gpg': byGpg('-s', '-z', '0'),
    'bzip2.gpg': byGpg('-s', '--compress-algo', 'bzip2'),
    'text.gpg': byGpg('-s', '-t'),
  }),
  gpgForm(
    'OpenPGP signed data by Sequoia',
    'opened',
    { 'binary.pgp': bySq('sign', '-B'), 'armoured.pgp': bySq('sign') },
    { needs: ['sq'] },
  ),
  gpgForm('OpenPGP clear signed text', 'opened', {
    'signed.asc': byGpg('--clearsign'),
    'sha512.asc': byGpg('--clearsign', '--digest-algo', 'SHA512'),
    'crlf.asc': (_payload, workdir) =>
      Buffer.from(runGpgOnPayload(workdir, '--clearsign').toString().replaceAll('\n', crlf)),
    'in-mail.eml': (_payload, workdir) => inMail(runGpgOnPayload(workdir, '--clearsign').toString()),
  }),
  gpgForm(
    'OpenPGP literal packets, each way to write a length',
    'opened',
    eachFraming((payload, framing) =>
      writePacket(
        literalTag,
        framing === 'new-1' || framing === 'old-1' ? writeLiteral(payload) : longLiteral(payload),
        framing,
      ),
    ),
    { needs: [] },
  ),
  gpgForm(
    'OpenPGP nested packets',
    'opened',
    {
      'compressed.gpg': (payload) =>
        writePacket(compressedTag, compress(zip, writePacket(literalTag, writeLiteral(payload), 'new-1')), 'old-rest'),
      'compressed-partial.gpg': (payload) =>
        writePacket(
          compressedTag,
          compress(zlib, writePacket(literalTag, writeLiteral(payload), 'new-1')),
          'new-partial',
        ),
      'compressed-twice.gpg': (payload) => {
        const inner = writePacket(
          compressedTag,
          compress(zlib, writePacket(literalTag, writeLiteral(payload), 'new-1')),
          'new-1',
        )
        return writePacket(compressedTag, compress(zip, inner), 'new-1')
      },
      'marker-first.gpg': (payload) =>
        Buffer.concat([
          writePacket(10, Buffer.from('PGP'), 'new-1'),
          writePacket(literalTag, writeLiteral(payload), 'new-1'),
        ]),
      'no-name.gpg': (payload) => writePacket(literalTag, writeLiteral(payload, 't', ''), 'old-1'),
      'utf-8.gpg': (payload) => writePacket(literalTag, writeLiteral(payload, 'u'), 'old-1'),
    },
    { needs: [] },
  ),
  gpgForm(
    'OpenPGP literal data of a format that is not known',
    'opened',
    {
      ...eachFraming((payload, framing) => {
        const isShort = framing === 'new-1' || framing === 'old-1'
        const body = isShort ? writeLiteral(payload, 'x') : Buffer.from(longLiteral(payload))
        body[0] = 0
        return writePacket(literalTag, body, framing)
      }),
      'name-that-is-no-text.gpg': (payload) =>
        writePacket(literalTag, writeLiteral(payload, 'x', '\x01\xff\x02'), 'old-1'),
      'longer-than-the-content.gpg': (payload) =>
        writePacket(literalTag, Buffer.concat([writeLiteral(payload, 'x'), Buffer.alloc(900)]), 'new-5').subarray(
          0,
          -900,
        ),
    },
    { needs: [] },
  ),
  gpgForm(
    'OpenPGP packets that gpg skips',
    'opened',
    {
      'comment.gpg': behind(writePacket(61, Buffer.from('a comment'), 'new-1')),
      'trust.gpg': behind(writePacket(12, Buffer.from('any bytes'), 'old-1')),
      'empty-signature.gpg': behind(writePacket(2, Buffer.alloc(0), 'old-1')),
      'damaged-key.gpg': behind(writePacket(6, Buffer.alloc(20, 'A'), 'old-2')),
      'many.gpg': behind(Buffer.concat(Array.from({ length: 300 }, () => writePacket(12, Buffer.from('a'), 'old-1')))),
      'long.gpg': behind(writePacket(12, Buffer.alloc(100_000, 'A'), 'new-5')),
      'in-compressed.gpg': (payload) =>
        writePacket(compressedTag, compress(zip, behind(writePacket(60, ciphertext, 'new-2'))(payload)), 'old-rest'),
      'armoured.asc': (payload) =>
        armour(behind(Buffer.concat(Array.from({ length: 5 }, () => writePacket(2, signature, 'new-1'))))(payload)),
    },
    { needs: [] },
  ),
  gpgForm(
    'OpenPGP compressed data that is shorter than its packet',
    'ambiguous',
    {
      'zip.gpg': (payload) =>
        writePacket(compressedTag, padded(compress(zip, behind(Buffer.alloc(0))(payload))), 'new-1').subarray(0, -9),
      'zlib.gpg': (payload) =>
        writePacket(compressedTag, padded(compress(zlib, behind(Buffer.alloc(0))(payload))), 'old-2').subarray(0, -9),
    },
    { needs: [] },
  ),
]
