import { run } from './tools.ts'

/** Line ends of a mail. */
export const crlf = '\r\n'

export type MailPart = { headers: string[]; body: string }

export type Mail = {
  parts: MailPart[]
  headers?: string[]
  eol?: string
  boundary?: string
  /** Value of Content-Type, when it does not simply name the boundary. */
  contentType?: string
  preamble?: string
  epilogue?: string
  /** The line that ends the last part is missing. */
  isOpenEnded?: boolean
  /** Text after the boundary in each line that begins a part. */
  afterBoundary?: string
}

const usualHeaders = [
  'From: Ann <ann@example.org>',
  'To: Ben <ben@example.org>',
  'Subject: The report',
  'Date: Mon, 06 Jan 2025 10:00:00 +0000',
  'Message-ID: <1@example.org>',
  'MIME-Version: 1.0',
]

/** Writes a mail with several parts. Lines end as `eol` says. */
export function writeMail({ parts, headers = usualHeaders, eol = crlf, boundary = 'frontier', ...mail }: Mail): Buffer {
  const contentType = mail.contentType ?? `multipart/mixed; boundary="${boundary}"`
  const lines = [
    ...headers,
    `Content-Type: ${contentType}`,
    '',
    mail.preamble ?? 'This is a message with several parts in MIME format.',
    ...parts.flatMap((part) => [`--${boundary}${mail.afterBoundary ?? ''}`, ...part.headers, '', part.body]),
    ...(mail.isOpenEnded ? [] : [`--${boundary}--`]),
    mail.epilogue ?? '',
  ]
  return Buffer.from(lines.join('\n').replaceAll('\n', eol), 'latin1')
}

/** Writes a mail whose body is the only part. */
export const writeSinglePart = (part: MailPart, eol = crlf): Buffer =>
  Buffer.from([...usualHeaders, ...part.headers, '', part.body, ''].join('\n').replaceAll('\n', eol), 'latin1')

export const textPart: MailPart = {
  headers: ['Content-Type: text/plain; charset=us-ascii'],
  body: 'Please find the report attached.',
}

const attachmentHeaders = [
  'Content-Type: application/octet-stream; name="payload.com"',
  'Content-Disposition: attachment; filename="payload.com"',
]

/** An attachment. `transferHeaders` replace `Content-Transfer-Encoding: <encoding>`. */
export const attach = (body: string, encoding: string, transferHeaders?: string[]): MailPart => ({
  headers: [...attachmentHeaders, ...(transferHeaders ?? [`Content-Transfer-Encoding: ${encoding}`])],
  body,
})

/** Breaks text into lines of a width. */
export const breakLines = (text: string, width: number): string =>
  text.match(new RegExp(`[^]{1,${width}}`, 'g'))?.join('\n') ?? ''

export const toBase64Lines = (bytes: Buffer, width = 76): string => breakLines(bytes.toString('base64'), width)

/** Writes each byte as `=XX`, with soft line breaks. */
export const toQuotedPrintable = (bytes: Buffer): string =>
  breakLines([...bytes].map((byte) => `=${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''), 72).replaceAll(
    '\n',
    '=\n',
  )

/** Encodes as uuencode writes it. */
export const uuencode = (bytes: Buffer, ...options: string[]): string =>
  run('uuencode', [...options, 'payload.com'], { input: bytes })
    .toString('latin1')
    .trimEnd()

/** Encodes as Usenet's yEnc does. */
export function encodeYenc(bytes: Buffer): string {
  const escaped = [0x00, 0x0a, 0x0d, 0x3d, 0x09, 0x2e]
  const encoded = [...bytes].flatMap((byte) => {
    const shifted = (byte + 42) % 256
    return escaped.includes(shifted) ? [0x3d, (shifted + 64) % 256] : [shifted]
  })
  const body = Buffer.from(encoded).toString('latin1')
  return `=ybegin line=256 size=${bytes.length} name=payload.com\n${body}\n=yend size=${bytes.length}`
}
