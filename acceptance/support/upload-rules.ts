import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headers } from '@assay/contract'
import { boundary, filePart, formType, images, type Part, textPart, toForm, toPart } from './forms.ts'
import { sendAndHangUp } from './http.ts'
import type { Subject } from './operation.ts'

const close = `--${boundary}--\r\n`

/** Rules for reading a form and its fields. */
export function testUploadRules(subject: Subject) {
  const { operation, send, sendForm, service } = subject
  const isAsync = 'mode' in operation && operation.mode === 'async'
  const isImage = 'kind' in operation && operation.kind === 'nsfw_image'
  const content = isImage ? images['one.png'] : Buffer.from('content')
  const file = filePart(content)
  const malformed = { status: 400, kind: 'malformed-request' } as const
  const sendBody = (body: string | Buffer, type = formType) => send({ headers: { 'content-type': type }, body })
  const many = (count: number, part: (n: number) => Part) => Array.from({ length: count }, (_, n) => part(n))

  test('the parts of a form are accepted in any order, with unknown fields among them', async () => {
    const name = textPart('file_name', 'a')
    const unknown = [textPart('x', 'y'), textPart('', ''), textPart('x', 'z'), textPart('file_url', 'ftp://x')]
    const orders = [
      [file, name],
      [name, file],
      [...unknown, file],
      [file, ...unknown],
      [name, file, ...unknown],
    ]
    for (const parts of orders) await subject.assertAccepted(await sendForm(...parts))
  })

  test('unknown parts are ignored, also files and names such as __proto__', async () => {
    for (const name of ['other', 'constructor', '__proto__', 'toString', 'errors']) {
      const part: Part = { head: `Content-Disposition: form-data; name="${name}"; filename="a"`, content: 'x' }
      await subject.assertAccepted(await sendForm(part, file, part, textPart(name, 'x'), textPart(name, 'y')), name)
    }
  })

  test('a file part is accepted in every form that clients send', async () => {
    const descriptions = [
      'filename="a.bin"',
      'filename=a.bin',
      'filename=""\r\nContent-Type: application/octet-stream',
      'filename="q\\"uote.bin"',
      "filename*=UTF-8''na%C3%AFve.bin",
      `filename="plain.bin"; filename*=utf-8'en'%e2%82%ac.bin`,
      'filename="naïve.bin"',
      'filename="C:\\\\dir\\\\a.bin"',
      'filename="../../a.bin"',
      'filename="a.bin"\r\nContent-Type: text/plain',
      'filename="a.bin"\r\nContent-Type: nonsense\r\nX-Other: 1',
    ]
    for (const description of descriptions) {
      await subject.assertAccepted(await sendForm(filePart(content, description)), description)
    }
    const lower = { head: 'content-disposition:form-data;filename="a";name="file"', content }
    await subject.assertAccepted(await sendForm(lower), 'lower case, no blanks, name last')
  })

  test('a boundary may be quoted, contain any legal character, and have up to 70 characters', async () => {
    const marks = ["a'()+_,-./:=?b", 'with blank', 'b'.repeat(70), '----WebKitFormBoundary7MA4YWxkTrZu0gW', '-', '0']
    for (const mark of marks) {
      const answer = await sendBody(toForm([file], mark), `multipart/form-data; charset=utf-8; boundary="${mark}"`)
      await subject.assertAccepted(answer, mark)
    }
    await subject.assertAccepted(await sendBody(toForm([file]), `multipart/form-data;BOUNDARY=${boundary}`), 'BOUNDARY')
  })

  test('bytes before the first boundary and after the last one are not content', async () => {
    const form = toForm([file])
    await subject.assertAccepted(await sendBody(Buffer.concat([Buffer.from('before\r\n'), form])), 'before')
    await subject.assertAccepted(await sendBody(Buffer.concat([form, Buffer.from('after\r\n')])), 'after')
    await subject.assertAccepted(await sendBody(form.subarray(0, -2)), 'without the last line end')
  })

  test('400: a form without a boundary in its type is refused', async () => {
    for (const type of ['multipart/form-data', 'multipart/form-data; boundary=', 'multipart/form-data; boundary=""']) {
      await subject.assertRefused(await sendBody(toForm([file]), type), malformed, type)
    }
  })

  test('400: a form that is broken or cut short is refused', async () => {
    const whole = toForm([file])
    const cut = (bytes: number) => whole.subarray(0, whole.length - bytes)
    const bodies: [why: string, body: string | Buffer][] = [
      ['empty', ''],
      ['no form', 'file=content'],
      ['another boundary', toForm([file], 'other')],
      ['cut before the boundary closes', cut(4)],
      ['cut before the last boundary', cut(close.length + 2)],
      ['cut inside the content', cut(close.length + 5)],
      ['cut inside the head of a part', `--${boundary}\r\nContent-Disposition: form-data; name="fi`],
      ['a part begun after the last whole one', Buffer.concat([toPart(file), Buffer.from(`--${boundary}\r\n`)])],
      ['lines ended by LF alone', whole.toString('latin1').replaceAll('\r\n', '\n')],
      ['no empty line after the head', `--${boundary}\r\nContent-Disposition: form-data; name="file"\r\n${close}`],
      ['a head that never ends', `--${boundary}\r\n${'X-Long: 0123456789\r\n'.repeat(5000)}\r\n\r\n${close}`],
    ]
    for (const [why, body] of bodies) await subject.assertRefused(await sendBody(body), malformed, why)
  })

  test('400: an upload whose connection ends before its announced length is refused', async () => {
    const head =
      `POST ${operation.path} HTTP/1.1\r\nHost: localhost\r\n${headers.apiKey}: ${subject.key()}\r\n` +
      `Content-Type: ${formType}\r\n`
    const part = toPart(file).toString('latin1')
    for (const body of [`Content-Length: 1000\r\n\r\n${part}`, `Transfer-Encoding: chunked\r\n\r\n400\r\n${part}`]) {
      assert.match(await sendAndHangUp(service.url, head + body), /^HTTP\/1\.1 400 /)
    }
  })

  test('400: content with a line that begins like the boundary is refused, not cut there in silence', async () => {
    for (const line of [`--${boundary}x`, `--${boundary}-`, `--${boundary} x`, `--${boundary}\n`]) {
      const body = toForm([filePart(Buffer.concat([content, Buffer.from(`\r\n${line}\r\nmore`)]))])
      await subject.assertRefused(await sendBody(body), malformed, line)
      const bytewise = Array.from(body, (_, i) => body.subarray(i, i + 1))
      const answer = await send({ headers: { 'content-type': formType }, body: bytewise })
      await subject.assertRefused(answer, malformed, `${line}, byte by byte`)
    }
    const harmless = `\r\n--${boundary.slice(0, -1)}\r\n-${boundary}--\r\n--`
    await subject.assertAccepted(await sendForm(filePart(Buffer.concat([content, Buffer.from(harmless)]))), 'harmless')
  })

  test('400: a file in a transfer encoding that some applications decode is refused', async () => {
    const encoded = (encoding: string) =>
      sendForm(filePart(content, `filename="a.bin"\r\nContent-Transfer-Encoding: ${encoding}`))
    for (const encoding of ['base64', 'Quoted-Printable']) {
      await subject.assertRefused(await encoded(encoding), malformed, encoding)
    }
    for (const encoding of ['binary', '8bit']) await subject.assertAccepted(await encoded(encoding), encoding)
  })

  test('400: a form with too many parts is refused', async () => {
    const other = (n: number): Part => ({
      head: `Content-Disposition: form-data; name="f${n}"; filename="a"`,
      content: '',
    })
    await subject.assertAccepted(await sendForm(file, ...many(99, (n) => textPart(`x${n}`, ''))), '99 fields')
    const tooMany = await sendForm(file, ...many(500, (n) => textPart(`x${n}`, '')))
    await subject.assertRefused(tooMany, malformed, '500 fields')
    await subject.assertRefused(await sendForm(file, ...many(50, other)), malformed, '50 files')
  })

  test('422: a form without a file is refused', async () => {
    await subject.assertInvalid(await sendForm(textPart('file_name', 'a')), ['file'], 'no file')
    await subject.assertInvalid(await sendForm(textPart('file', 'content')), ['file'], 'file as text')
    await subject.assertInvalid(await sendForm(textPart('File', 'content')), ['file'], 'names have a case')
    await subject.assertInvalid(await sendForm(textPart('file_name', ''), textPart('file', '')), ['file', 'file_name'])
  })

  test('422: a field given twice is refused', async () => {
    await subject.assertInvalid(await sendForm(file, file), ['file'])
    await subject.assertInvalid(await sendForm(textPart('file_name', 'a'), file, textPart('file_name', 'a')), [
      'file_name',
    ])
    const callbacks = [textPart('callback_url', 'http://example.com/'), textPart('callback_url', 'http://example.com/')]
    const answer = await sendForm(file, ...callbacks)
    await (isAsync ? subject.assertInvalid(answer, ['callback_url']) : subject.assertAccepted(answer))
  })

  test('422: an empty file is refused', async () => {
    await subject.assertInvalid(await sendForm(filePart('')), ['file'])
    await subject.assertInvalid(await sendForm(filePart(''), textPart('file_name', ' ')), ['file', 'file_name'])
  })

  test('422: a text field that is sent as a file is refused', async () => {
    const asFile = (name: string): Part => ({
      head: `Content-Disposition: form-data; name="${name}"; filename="a"`,
      content: 'http://example.com/',
    })
    await subject.assertInvalid(await sendForm(file, asFile('file_name')), ['file_name'])
    const answer = await sendForm(asFile('callback_url'), file)
    await (isAsync ? subject.assertInvalid(answer, ['callback_url']) : subject.assertAccepted(answer))
  })
}
