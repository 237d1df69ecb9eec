import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Form } from './form.ts'
import {
  attach,
  crlf,
  encodeYenc,
  type MailPart,
  textPart,
  toBase64Lines,
  toQuotedPrintable,
  uuencode,
  writeMail,
  writeSinglePart,
} from './mail-writer.ts'
import { type Build, formsOf, runAndRead, zipFile } from './samples.ts'

const mailForm = formsOf({
  family: 'mail',
  needs: ['uuencode'],
  extractors: ['python content', 'munpack', 'ripmime', 'uudeview', 'munpack and others'],
})

const lineEnds = { crlf, lf: '\n', cr: '\r' }

const encodings: Record<string, (payload: Buffer) => MailPart> = {
  base64: (payload) => attach(toBase64Lines(payload), 'base64'),
  'quoted-printable': (payload) => attach(toQuotedPrintable(payload), 'quoted-printable'),
  '7bit': (payload) => attach(payload.toString('latin1'), '7bit'),
  '8bit': (payload) => attach(payload.toString('latin1'), '8bit'),
  binary: (payload) => attach(payload.toString('latin1'), 'binary'),
  uuencode: (payload) => attach(uuencode(payload), 'x-uuencode'),
}

const mailWith = (part: MailPart, eol = crlf) => writeMail({ parts: [textPart, part], eol })

/** Makes a sample for each encoding, with one kind of line end. */
const eachEncoding = (eol: string): Record<string, Build> =>
  Object.fromEntries(
    Object.entries(encodings).map(([encoding, build]) => [
      `${encoding}.eml`,
      (payload: Buffer) => mailWith(build(payload), eol),
    ]),
  )

const pythonMail = `
import sys
from email import policy
from email.message import EmailMessage
data = open('payload.com', 'rb').read()
kind = sys.argv[1]
mail = EmailMessage(policy=policy.SMTP if kind == 'smtp' else policy.default)
mail['From'] = 'ann@example.org'
mail['To'] = 'ben@example.org'
mail['Subject'] = 'The report'
mail.set_content('Please find the report attached.')
names = {'long': 'payload ' * 20 + '.com', 'foreign': 'Übersicht.com'}
mail.add_attachment(data, maintype='application', subtype='octet-stream', filename=names.get(kind, 'payload.com'))
if kind == 'two':
    mail.add_attachment(data + b'\\n', maintype='text', subtype='plain', filename='copy.txt')
mail.set_boundary('frontier')
open('mail.eml', 'wb').write(mail.as_bytes())
`

const byPython =
  (kind: string): Build =>
  (_payload, workdir) =>
    runAndRead(workdir, 'mail.eml', 'python3', '-c', pythonMail, kind)

/** Puts a mail into another one, `depth` times. */
function nest(mail: Buffer, depth: number): Buffer {
  if (depth === 0) return mail
  const part = { headers: ['Content-Type: message/rfc822'], body: mail.toString('latin1').replaceAll(crlf, '\n') }
  return nest(writeMail({ parts: [textPart, part], boundary: `frontier-${depth}` }), depth - 1)
}

const withBase64 = (payload: Buffer) => mailWith(encodings.base64?.(payload) as MailPart)

const postmark = 'From ann@example.org Mon Jan  6 10:00:00 2025'
const plainMail = writeSinglePart({ headers: ['Content-Type: text/plain'], body: 'Nothing is attached.' }, '\n')

const toMbox = (mails: Buffer[], eol: string) =>
  Buffer.from(
    mails
      .map((mail) => `${postmark}\n${mail.toString('latin1').replaceAll(crlf, '\n')}\n\n`)
      .join('')
      .replaceAll('\n', eol),
    'latin1',
  )

const withSubtype =
  (subtype: string): Build =>
  (payload) =>
    writeMail({
      parts: [textPart, attach(toBase64Lines(payload), 'base64')],
      contentType: `multipart/${subtype}; boundary=frontier`,
    })

const withType =
  (type: string): Build =>
  (payload) =>
    writeSinglePart({
      headers: [`Content-Type: ${type}`, 'Content-Transfer-Encoding: base64'],
      body: toBase64Lines(payload),
    })

const startingWith =
  (start: string): Build =>
  (payload) =>
    Buffer.concat([Buffer.from(start, 'latin1'), withBase64(payload)])

const packed =
  (program: string, ...args: string[]): Build =>
  (payload, workdir) => {
    const name = `payload.${program}`
    const bytes =
      program === 'zip'
        ? zipFile(workdir, 'inner.com', payload)
        : runAndRead(workdir, name, program, ...args, name, 'payload.com')
    return mailWith(attach(toBase64Lines(bytes), 'base64'))
  }

const uuencodedText = (start: string, end: string, ...options: string[]): Build => {
  return (payload) => Buffer.from(`${start}${uuencode(payload, ...options)}\n${end}`, 'latin1')
}

const withFirstLine =
  (line: string): Build =>
  (payload) =>
    Buffer.from(`A text.\n${uuencode(payload).replace(/^.*/, line)}\n`, 'latin1')

/** Mail as ordinary programs write it. */
export const mailForms: Form[] = [
  ...Object.entries(lineEnds).map(([name, eol]) =>
    mailForm(`mail with ${name.toUpperCase()} line ends, each encoding`, 'opened', eachEncoding(eol)),
  ),
  mailForm(
    'mail by Python',
    'opened',
    {
      'default.eml': byPython('default'),
      'smtp.eml': byPython('smtp'),
      'long-name.eml': byPython('long'),
      'foreign-name.eml': byPython('foreign'),
      'two.eml': byPython('two'),
    },
    { needs: ['python3'] },
  ),
  mailForm(
    'mail by mpack',
    'opened',
    {
      'mpack.eml': (_payload, workdir) =>
        runAndRead(workdir, 'out', 'mpack', '-s', 'Report', '-o', 'out', 'payload.com'),
      'mpack-typed.eml': (_payload, workdir) =>
        runAndRead(workdir, 'out', 'mpack', '-s', 'Report', '-c', 'image/png', '-o', 'out', 'payload.com'),
      'mpack-described.eml': (_payload, workdir) => {
        writeFileSync(join(workdir, 'text'), 'A description of the file.\n')
        return runAndRead(workdir, 'out', 'mpack', '-s', 'Report', '-d', 'text', '-o', 'out', 'payload.com')
      },
    },
    { needs: ['mpack'] },
  ),
  mailForm('mail in mail', 'opened', {
    'depth-1.eml': (payload) => nest(withBase64(payload), 1),
    'depth-2.eml': (payload) => nest(withBase64(payload), 2),
    'depth-4.eml': (payload) => nest(withBase64(payload), 4),
    'attached.eml': (payload) => mailWith(attach(toBase64Lines(withBase64(payload)), 'base64')),
  }),
  mailForm('mailbox', 'opened', {
    'one.mbox': (payload) => toMbox([withBase64(payload)], '\n'),
    'last-of-two.mbox': (payload) => toMbox([plainMail, withBase64(payload)], '\n'),
    'last-of-nine.mbox': (payload) => toMbox([...Array(8).fill(plainMail), withBase64(payload)], '\n'),
    'crlf.mbox': (payload) => toMbox([plainMail, withBase64(payload)], crlf),
  }),
  mailForm('mail with each kind of several parts', 'opened', {
    'alternative.eml': withSubtype('alternative'),
    'related.eml': withSubtype('related; type="text/html"'),
    'parallel.eml': withSubtype('parallel'),
    'report.eml': withSubtype('report; report-type=delivery-status'),
    'unknown.eml': withSubtype('x-of-our-own'),
    'form-data.eml': withSubtype('form-data'),
  }),
  mailForm('mail with one part', 'opened', {
    'octets.eml': withType('application/octet-stream; name=payload.com'),
    'text.eml': withType('text/plain; name=payload.com'),
    'html.eml': withType('text/html'),
    'image.eml': withType('image/jpeg'),
  }),
  mailForm('mail with an unusual beginning', 'opened', {
    'received.eml': startingWith('Received: from a by b; Mon, 06 Jan 2025 10:00:00 +0000\r\n'),
    'own-header.eml': startingWith('X-Header-Of-Our-Own: 1\r\n'),
    'return-path.eml': startingWith('Return-Path: <>\r\n'),
    'long-header.eml': startingWith(`X-Long: ${'abcdefg hijklmn\r\n '.repeat(800)}end\r\n`),
    'many-headers.eml': startingWith('X-Again: and again\r\n'.repeat(600)),
  }),
  mailForm(
    'mail with a packed attachment',
    'opened',
    {
      'zip.eml': packed('zip'),
      '7z.eml': packed('7z', 'a', '-bd'),
      'tar.eml': packed('tar', '-cf'),
    },
    { needs: ['zip', '7z', 'tar'] },
  ),
  mailForm('web page with its resources (MHTML)', 'opened', {
    'page.mht': (payload) =>
      writeMail({
        headers: [
          'From: <Saved by Blink>',
          'Snapshot-Content-Location: https://example.org/',
          'Subject: A page',
          'MIME-Version: 1.0',
        ],
        contentType: 'multipart/related; type="text/html"; boundary="frontier"',
        parts: [
          { headers: ['Content-Type: text/html', 'Content-Location: https://example.org/'], body: '<p>A page' },
          {
            headers: ['Content-Type: image/png', 'Content-Transfer-Encoding: base64', 'Content-Location: cid:a@b'],
            body: toBase64Lines(payload),
          },
        ],
      }),
    'quoted.mhtml': (payload) =>
      writeMail({
        contentType: 'multipart/related; boundary="frontier"',
        parts: [
          {
            headers: ['Content-Type: text/html', 'Content-Transfer-Encoding: quoted-printable'],
            body: toQuotedPrintable(payload),
          },
        ],
      }),
  }),
  mailForm(
    'uuencoded text',
    'opened',
    {
      'plain.uu': uuencodedText('', ''),
      'base64.uu': uuencodedText('', '', '-m'),
      'encoded-name.uu': uuencodedText('', '', '-m', '-e'),
      'in-text.txt': uuencodedText('Dear Ben,\n\nhere is the program.\n\n', '\nAnn\n'),
      'base64-in-text.txt': uuencodedText('Dear Ben,\n\nhere is the program.\n\n', '\nAnn\n', '-m'),
      'after-200-lines.txt': uuencodedText('A line of text that says nothing.\n'.repeat(200), ''),
      'in-mail.eml': (payload) =>
        writeSinglePart({ headers: ['Content-Type: text/plain'], body: `Hello\n\n${uuencode(payload)}\n` }),
      'base64-in-mail.eml': (payload) =>
        writeSinglePart({ headers: ['Content-Type: text/plain'], body: `Hello\n\n${uuencode(payload, '-m')}\n` }, '\n'),
    },
    { extractors: ['uudecode', 'uudeview', 'python content'] },
  ),
  mailForm(
    'uuencoded text with an odd first line',
    'ambiguous',
    {
      'control.txt': uuencodedText('A \x02text.\n\n', ''),
      'rights.txt': withFirstLine('begin  \t+100644 payload.com'),
      'short-rights.txt': withFirstLine('begin 64 payload.com'),
      'joined.txt': withFirstLine('begin 644payload.com'),
      'begun-twice.txt': uuencodedText('begin 644 a\n#0V%T\nA text.\n', ''),
      'masked.txt': (payload) => Buffer.from(`A text.\n${uuencode(payload).replace('\nM', '\n\xcd')}\n`, 'latin1'),
      'encoded-name.txt': (payload) =>
        Buffer.from(`A text.\n${uuencode(payload, '-m').replace(/644 .*/, ' 644 payload.com')}\n`, 'latin1'),
    },
    { extractors: ['uudecode', 'uudeview', 'python content'] },
  ),
  mailForm(
    'yEnc',
    'ambiguous',
    {
      'in-mail.eml': (payload) =>
        writeSinglePart({ headers: ['Content-Type: text/plain'], body: `Hello\n\n${encodeYenc(payload)}\n` }),
      'as-part.eml': (payload) => mailWith(attach(encodeYenc(payload), 'x-yenc')),
    },
    { needs: [] },
  ),
]
