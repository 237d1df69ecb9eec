import type { Form } from './form.ts'
import {
  attach,
  breakLines,
  type Mail,
  type MailPart,
  textPart,
  toBase64Lines,
  toQuotedPrintable,
  uuencode,
  writeMail,
  writeSinglePart,
} from './mail-writer.ts'
import { type Build, formsOf } from './samples.ts'

const oddMailForm = formsOf({
  family: 'mail',
  needs: [],
  extractors: ['python content', 'munpack', 'ripmime', 'uudeview', 'uudecode'],
})

const withBase64 = (payload: Buffer): MailPart => attach(toBase64Lines(payload), 'base64')

const withMail =
  (mail: Partial<Mail>): Build =>
  (payload) =>
    writeMail({ parts: [textPart, withBase64(payload)], ...mail })

const withBoundary = (parameters: string, boundary = 'frontier'): Build =>
  withMail({ boundary, contentType: `multipart/mixed${parameters}` })

const withBase64Text =
  (change: (base64: string) => string): Build =>
  (payload) =>
    writeMail({ parts: [textPart, attach(change(payload.toString('base64')), 'base64')] })

const withTransferHeaders =
  (...headers: string[]): Build =>
  (payload) =>
    writeMail({ parts: [textPart, attach(toBase64Lines(payload), '', headers)] })

const toLatin1 = (text: string) => Buffer.from(text, 'latin1')

const usual = 'MIME-Version: 1.0\nSubject: The report\nFrom: ann@example.org\n'

/** Mail that breaks rules or uses rare ones. Mail programs differ about it. */
export const oddMailForms: Form[] = [
  oddMailForm('mail with unusual boundary parameters', 'ambiguous', {
    'comment.eml': withBoundary('; (a comment) boundary=frontier'),
    'comment-after.eml': withBoundary('; boundary=frontier (a comment)'),
    'continued.eml': withBoundary(';\r\n boundary*0=fron;\r\n boundary*1=tier'),
    'encoded.eml': withBoundary("; boundary*=us-ascii''front%69er"),
    'continued-encoded.eml': withBoundary(";\r\n boundary*0*=us-ascii'en'fron;\r\n boundary*1*=t%69er"),
    'folded.eml': withBoundary(';\r\n\tboundary="frontier"'),
    'spaced.eml': withBoundary(' ; boundary = "frontier" '),
    'upper-case.eml': withBoundary('; BOUNDARY=frontier'),
    'twice.eml': withBoundary('; boundary=frontier; boundary=other'),
    'twice-other-first.eml': withBoundary('; boundary=other; boundary=frontier'),
    'single-quotes.eml': withBoundary("; boundary='frontier'", "'frontier'"),
    'escaped-quote.eml': withBoundary('; boundary="fron\\"tier"', 'fron"tier'),
    'trailing-semicolon.eml': withBoundary('; boundary="frontier";'),
    'no-semicolon.eml': withBoundary(' boundary="frontier"'),
  }),
  oddMailForm('mail with unusual boundary lines', 'ambiguous', {
    'no-last.eml': withMail({ isOpenEnded: true }),
    'blanks-after.eml': withMail({ afterBoundary: '   \t' }),
    'text-after.eml': withMail({ afterBoundary: ' and more' }),
    'empty.eml': withMail({ boundary: '', contentType: 'multipart/mixed; boundary=""' }),
    'long.eml': withMail({ boundary: 'b'.repeat(200) }),
    'only-dashes.eml': withMail({ boundary: '-----' }),
    'inner-has-prefix.eml': (payload) => {
      const inner = writeMail({ headers: [], boundary: 'frontier-2', parts: [withBase64(payload)], eol: '\n' })
      const [header = '', ...body] = inner.toString('latin1').split('\n\n')
      return writeMail({ parts: [textPart, { headers: [header], body: body.join('\n\n') }] })
    },
    'same-boundary-inside.eml': (payload) => {
      const headers = ['Content-Type: multipart/mixed; boundary=frontier']
      const body = `--frontier\n${withBase64(payload).headers.join('\n')}\n\n${toBase64Lines(payload)}\n--frontier--`
      return writeMail({ parts: [textPart, { headers, body }] })
    },
    'no-header-at-all.eml': (payload) => writeMail({ parts: [{ headers: [], body: payload.toString('latin1') }] }),
    'ended-twice.eml': (payload) =>
      writeMail({ parts: [textPart, { headers: ['X-A: b'], body: '--frontier--' }, withBase64(payload)] }),
  }),
  oddMailForm('mail with unusual base64', 'ambiguous', {
    'junk.eml': withBase64Text((text) => breakLines(text, 7).replaceAll('\n', '!*')),
    'dashes.eml': withBase64Text((text) => breakLines(text, 11).replaceAll('\n', '.-')),
    'one-line.eml': withBase64Text((text) => text),
    'lines-of-1.eml': withBase64Text((text) => breakLines(text, 1)),
    'lines-of-5.eml': withBase64Text((text) => breakLines(text, 5)),
    'empty-lines.eml': withBase64Text((text) => breakLines(text, 20).replaceAll('\n', '\n\n')),
    'blanks.eml': withBase64Text((text) => breakLines(text, 3).replaceAll('\n', ' \t')),
    'words-before.eml': withBase64Text((text) => `The file follows here.\n\n${breakLines(text, 60)}`),
    'no-padding.eml': withBase64Text((text) => text.replaceAll('=', '')),
    'text-after.eml': withBase64Text((text) => `${text}\n\nA text after the end, with a signature.`),
  }),
  oddMailForm('mail with unusual transfer encoding headers', 'ambiguous', {
    'first-of-two.eml': withTransferHeaders('Content-Transfer-Encoding: base64', 'Content-Transfer-Encoding: 7bit'),
    'second-of-two.eml': withTransferHeaders('Content-Transfer-Encoding: 7bit', 'Content-Transfer-Encoding: base64'),
    'upper-case.eml': withTransferHeaders('CONTENT-TRANSFER-ENCODING: BASE64'),
    'comment.eml': withTransferHeaders('Content-Transfer-Encoding: base64 (a comment)'),
    'comment-before.eml': withTransferHeaders('Content-Transfer-Encoding: (a comment) base64'),
    'quoted.eml': withTransferHeaders('Content-Transfer-Encoding: "base64"'),
    'folded.eml': withTransferHeaders('Content-Transfer-Encoding:\n base64'),
    'semicolon.eml': withTransferHeaders('Content-Transfer-Encoding: base64;'),
    'no-blank.eml': withTransferHeaders('Content-Transfer-Encoding:base64'),
    'blank-before-colon.eml': withTransferHeaders('Content-Transfer-Encoding : base64'),
    'unknown.eml': withTransferHeaders('Content-Transfer-Encoding: x-base64'),
    'damaged-field.eml': (payload) =>
      writeMail({
        parts: [textPart, attach(toQuotedPrintable(payload), '', ['Content-Transfer-Encoding0 quoted-printable'])],
      }),
    'uu-named-uue.eml': (payload) => writeMail({ parts: [attach(uuencode(payload), 'x-uue')] }),
    'uu-named-uuencode.eml': (payload) => writeMail({ parts: [attach(uuencode(payload), 'uuencode')] }),
    'quoted-lower-case.eml': (payload) =>
      writeMail({ parts: [attach(toQuotedPrintable(payload).toLowerCase(), 'quoted-printable')] }),
  }),
  oddMailForm('mail with content outside of its parts', 'ambiguous', {
    'uu-preamble.eml': (payload) => writeMail({ parts: [textPart], preamble: uuencode(payload) }),
    'uu-epilogue.eml': (payload) => writeMail({ parts: [textPart], epilogue: `${uuencode(payload)}\n` }),
    'base64-uu-epilogue.eml': (payload) =>
      writeMail({ parts: [textPart], epilogue: `${uuencode(payload, '-m')}\n`, eol: '\n' }),
    'part-in-epilogue.eml': (payload) => {
      const part = withBase64(payload)
      return writeMail({
        parts: [textPart],
        epilogue: ['--frontier', ...part.headers, '', part.body, '--frontier--', ''].join('\n'),
      })
    },
    'uu-in-text-part.eml': (payload) => writeMail({ parts: [{ ...textPart, body: uuencode(payload) }] }),
    'uu-in-html-part.eml': (payload) =>
      writeMail({ parts: [{ headers: ['Content-Type: text/html'], body: `<pre>\n${uuencode(payload)}\n</pre>` }] }),
  }),
  oddMailForm('mail with unusual headers', 'ambiguous', {
    'no-mime-version.eml': withMail({ headers: ['From: ann@example.org', 'Subject: The report'] }),
    'only-content-type.eml': withMail({ headers: [] }),
    'bytes-in-header.eml': withMail({ headers: ['Subject: \xe4\xf6\xfc\x80', 'From: ann@example.org'] }),
    'byte-order-mark.eml': (payload) => Buffer.concat([toLatin1('\xef\xbb\xbf'), withMail({})(payload, '')]),
    'empty-line-first.eml': (payload) => Buffer.concat([toLatin1('\r\n'), withMail({})(payload, '')]),
    'line-without-colon.eml': withMail({ headers: ['From: ann@example.org', 'a line without a colon', 'Subject: a'] }),
    'postmark.eml': (payload) =>
      Buffer.concat([toLatin1('From ann@example.org Mon Jan  6 10:00:00 2025\r\n'), withMail({})(payload, '')]),
    'escaped-postmark.eml': (payload) => Buffer.concat([toLatin1('>From ann Mon\r\n'), withMail({})(payload, '')]),
    'two-content-types.eml': (payload) =>
      Buffer.concat([toLatin1('Content-Type: text/plain\r\n'), withMail({})(payload, '')]),
    'mixed-line-ends.eml': (payload) =>
      toLatin1(
        withMail({})(payload, '')
          .toString('latin1')
          .replace(/\r\n(?=[A-Z])/g, '\n'),
      ),
    'encoded-multipart.eml': (payload) => {
      const inner = writeMail({ headers: [], parts: [withBase64(payload)] }).toString('latin1')
      const body = inner.slice(inner.indexOf('\r\n\r\n') + 4)
      const headers = ['Content-Type: multipart/mixed; boundary=frontier', 'Content-Transfer-Encoding: base64']
      return writeSinglePart({ headers, body: toBase64Lines(toLatin1(body)) })
    },
    'encoded-message.eml': (payload) => {
      const headers = ['Content-Type: message/rfc822', 'Content-Transfer-Encoding: base64']
      const inner = toLatin1(`${usual}${withBase64(payload).headers.join('\n')}\n\n${toBase64Lines(payload)}\n`)
      return writeMail({ parts: [textPart, { headers, body: toBase64Lines(inner) }] })
    },
  }),
]
