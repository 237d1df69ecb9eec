import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isMailHead } from '../../../src/domain/content/document-formats.ts'
import { mailReader } from '../../../src/engines/unpack/child/readers/mail.ts'
import { hasMember, tryReader } from './read-with.ts'
import { fuzzReader } from './reader-support.ts'

const payload = 'The content of an attachment, which is long enough to take two lines of base64.'
const base64 = Buffer.from(payload).toString('base64').replace(/.{40}/g, '$&\n')

const attachment = (...headers: string[]) =>
  ['Content-Type: application/octet-stream; name="a.bin"', ...headers, ''].join('\n')

const newMail = ({
  parts = [`${attachment('Content-Transfer-Encoding: base64')}\n${base64}`],
  boundary = 'xyz',
  type = `multipart/mixed; boundary=${boundary}`,
  eol = '\n',
}: {
  parts?: string[]
  boundary?: string
  type?: string
  eol?: string
} = {}) =>
  [
    `Subject: a`,
    `Content-Type: ${type}`,
    '',
    'Text.',
    ...parts.flatMap((part) => [`--${boundary}`, part]),
    `--${boundary}--`,
    '',
  ]
    .join('\n')
    .replaceAll('\n', eol)

describe('an attachment is given', () => {
  const part = (encoding: string, body: string) => `${attachment(`Content-Transfer-Encoding: ${encoding}`)}\n${body}`
  const quoted = payload.replace(/[aeiou]/g, (char) => `=${char.charCodeAt(0).toString(16)}`)
  const inner = newMail({ boundary: 'inner' }).split('\n').slice(1).join('\n')
  const forms: Record<string, string> = {
    'in quoted-printable with a damaged field': newMail({
      parts: [`${attachment('Content-Transfer-Encoding0 quoted-printable')}\n${quoted}`],
    }),
    'in base64 behind words': newMail({
      parts: [part('base64', `The file follows here.\n\n${base64}`)],
    }),
    'in base64 behind the start of other base64': newMail({
      parts: [part('base64', `${base64.slice(0, 60)}\nContent-MD5: abc\n\n${base64}`)],
    }),
    'in base64 without a field, with other characters': newMail({
      parts: [`${attachment()}\n${base64.replace(/.{11}/g, '$&.-')}`],
    }),
    'in base64 among other lines': newMail({
      parts: [part('base64', base64.replace('\n', '\nA line (of text).\n'))],
    }),
    'behind controls in the first field': newMail().replace('Subject', 'S\0b\x01ct'),
    'with LF': newMail(),
    'with CRLF': newMail({ eol: '\r\n' }),
    'with CR': newMail({ eol: '\r' }),
    'in quoted-printable': newMail({
      parts: [part('quoted-printable', quoted.replaceAll(' ', ' =\n'))],
    }),
    'as it is': newMail({ parts: [part('8bit', payload)] }),
    'in parts of a part': newMail({ parts: [inner] }),
    'without the last boundary': newMail().replace('--xyz--', ''),
    'behind the last boundary': newMail().replace('Text.', '--xyz--'),
    'with a comment before the boundary': newMail({ type: 'multipart/mixed; (boundary=a) boundary=xyz' }),
    'with a boundary in two pieces': newMail({ type: 'multipart/mixed; boundary*0=x; boundary*1="yz"' }),
    'with blanks behind the boundary': newMail().replaceAll('--xyz\n', '--xyz \t\n'),
    'with text behind the boundary': newMail().replaceAll('--xyz\n', '--xyz and more\n'),
    'with a multipart type that names no boundary': newMail({ type: 'multipart/mixed' }),
    'in a mailbox': `From a@b Mon Jan  6 10:00:00 2025\nSubject: a\n\nText\n\nFrom a@b Mon Jan  6 10:00:00 2025\n${newMail()}`,
    'behind text': `A text.\n\n${newMail().replace('Subject: a\n', '')}`,
    'behind a line that is no field': newMail().replace('Subject: a\n', 'Subject: a\nno field\n'),
    'with a blank before the colon': newMail({
      parts: [`${attachment('Content-Transfer-Encoding : base64')}\n${base64}`],
    }),
  }
  for (const [name, mail] of Object.entries(forms)) {
    test(name, async () => {
      const { given, doubts, accounted } = await tryReader(mailReader, mail)
      assert.ok(hasMember(given, payload))
      assert.deepEqual(doubts, [])
      assert.ok(accounted.length > 0)
    })
  }

  test('by its name', async () => {
    const { given } = await tryReader(mailReader, newMail())
    assert.deepEqual(
      given.map(({ path }) => path),
      ['a.bin'],
    )
  })
})

describe('where programs differ, each reading is given', () => {
  const withBody = (body: string, ...headers: string[]) =>
    newMail({ parts: [`${attachment('Content-Transfer-Encoding: base64', ...headers)}\n${body}`] })
  const encode = (text: string) => Buffer.from(text).toString('base64')

  test('base64 with padding in the middle', async () => {
    const { given } = await tryReader(mailReader, withBody(`${encode('a')}\n${encode('payload')}`))
    assert.ok(hasMember(given, 'a') && hasMember(given, 'apayload'))
  })

  test('base64 with other characters', async () => {
    const { given } = await tryReader(mailReader, withBody(`${encode('abc')}!${encode('payload')}`))
    assert.ok(hasMember(given, 'abc') && hasMember(given, 'abcpayload'))
  })

  test('two encodings', async () => {
    const body = encode('payload')
    const { given, doubts } = await tryReader(mailReader, withBody(body, 'Content-Transfer-Encoding: 7bit'))
    assert.ok(hasMember(given, body) && hasMember(given, 'payload'))
    assert.deepEqual(doubts, ['UnsupportedContainer'])
  })

  test('a body of several parts that is encoded as a whole', async () => {
    const [, ...body] = newMail().split('\n\n')
    const header = 'Content-Type: multipart/mixed; boundary=xyz\nContent-Transfer-Encoding: base64\n\n'
    const { given } = await tryReader(mailReader, header + encode(body.join('\n\n')))
    const inner = await tryReader(mailReader, given[0]?.bytes ?? '')
    assert.ok(hasMember(inner.given, payload))
  })
})

test('a mail in a mail is given whole', async () => {
  const inner = newMail({ boundary: 'inner' }).trimEnd()
  const { given } = await tryReader(mailReader, newMail({ parts: [`Content-Type: message/rfc822\n\n${inner}`] }))
  assert.ok(hasMember(given, inner))
})

test('ordinary mail and text have nothing to give and no doubts', async () => {
  const text = 'A long enough line of an ordinary text in a mail.\n'.repeat(10)
  const parts = [`Content-Type: text/plain\n\n${text}`, `Content-Type: text/html; charset=utf-8\n\n<p>${text}`]
  for (const mail of [newMail({ parts }), `Subject: a\nFrom: b\n\n${text}`, `Subject: x ${text}`, 'Subject: x', '']) {
    const { given, doubts } = await tryReader(mailReader, mail)
    assert.deepEqual([given, doubts], [[], []])
  }
})

test('bytes behind the parts are given', async () => {
  const bytes = Buffer.from('7z\xbc\xaf\x27\x1c\0\0', 'latin1')
  const { given } = await tryReader(mailReader, Buffer.concat([Buffer.from(newMail()), bytes]))
  assert.ok(hasMember(given, bytes))
})

test('text is mail when its header has a field of MIME', () => {
  assert.ok(isMailHead(Buffer.from('X-Any: a\nCONTENT-TYPE: text/plain\n\n')))
  assert.ok(isMailHead(Buffer.from('\ufeff\r\n>From a\rContent-Type: b\r\r')))
  assert.ok(!isMailHead(Buffer.from('Subject: x\n\nContent-Type: a')))
  assert.ok(!isMailHead(Buffer.from('A text.\nContent-Type: a')))
})

test('damaged mail never fails', async () => {
  const mail = Buffer.from(newMail({ eol: '\r\n' }) + newMail({ parts: [newMail({ boundary: 'inner' })] }))
  await fuzzReader(mailReader, [mail], 500)
})

test('parts that overlap do not multiply the work', async () => {
  const depth = 60
  const starts = Array.from({ length: depth }, (_, i) => `Content-Type: multipart/mixed; boundary=b${i}\n\n--b${i}\n`)
  const { doubts } = await tryReader(mailReader, starts.join(''))
  assert.deepEqual(doubts, ['ScanLimitExceeded'])
})
