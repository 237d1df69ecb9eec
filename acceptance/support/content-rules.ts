import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headers as names } from '@assay/contract'
import { boundary, filePart, formType, images, textPart, toForm, toPart } from './forms.ts'
import type { Subject } from './operation.ts'
import { openRaw } from './raw-socket.ts'

const chunk = Buffer.alloc(1024 * 1024, 'x')
const head = toPart(filePart('')).subarray(0, -2)
const end = Buffer.from(`\r\n--${boundary}--\r\n`)

/** Rules for the size of an upload, which are checked while it arrives. */
export function testSizeLimit(subject: Subject, megabytes: number) {
  const { operation, send, service } = subject
  const isImage = 'kind' in operation && operation.kind === 'nsfw_image'
  const lead = isImage ? images['one.png'] : Buffer.from('content')
  const headers = { 'content-type': formType }

  function* listContent(bytes: number): Generator<Buffer> {
    yield lead
    let left = bytes - lead.length
    for (; left > chunk.length; left -= chunk.length) yield chunk
    yield chunk.subarray(0, left)
  }

  test(`a file of exactly ${megabytes} MB is accepted`, async () => {
    const body = function* () {
      yield head
      yield* listContent(megabytes * chunk.length)
      yield end
    }
    await subject.assertAccepted(await send({ headers, body: body() }))
  })

  test(`422: a file of one byte over ${megabytes} MB is refused before its end arrives, and the rest is dropped`, async () => {
    const connection = await openRaw(service.url)
    const { host } = new URL(service.url)
    const line = `POST ${operation.path} HTTP/1.1\r\nHost: ${host}\r\n${names.apiKey}: ${subject.key()}\r\n`
    await connection.send(`${line}Content-Type: ${formType}\r\nTransfer-Encoding: chunked\r\n\r\n`)
    const pieces = [toPart(textPart('file_name', '')), head, ...listContent(megabytes * chunk.length + 1)]
    for (const piece of pieces) await connection.send(toChunk(piece))
    await subject.assertInvalid({ ...(await connection.readAnswer()), path: operation.path }, ['file', 'file_name'])
    for (let more = 0; more < 32; more++) await connection.send(toChunk(chunk))
    await connection.send(Buffer.concat([toChunk(end), toChunk(Buffer.alloc(0))]))
    // The connection stays open for the next request.
    await connection.send(`${line}Content-Length: 0\r\n\r\n`)
    assert.equal((await connection.readAnswer()).status, 415)
    connection.leave()
  })
}

const toChunk = (bytes: Buffer) =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])

/** Rules for the four image formats, which are recognized by content alone. */
export function testImageRules(subject: Subject) {
  test('JPEG, PNG, GIF and WebP are accepted, whatever name and type the part has', async () => {
    for (const [name, content] of Object.entries(images)) {
      const parameters = 'filename="notes.txt"\r\nContent-Type: text/plain'
      await subject.assertAccepted(await subject.sendForm(filePart(content, parameters)), name)
    }
  })

  test('422: content that is none of the four image formats is refused, whatever name and type the part has', async () => {
    const contents: [what: string, content: string | Buffer][] = [
      ['text', 'hello'],
      ['one byte', Buffer.of(0xff)],
      ['SVG', '<svg xmlns="http://www.w3.org/2000/svg"/>'],
      ['BMP', Buffer.from('BM\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000')],
      ['TIFF', Buffer.of(0x49, 0x49, 0x2a, 0, 8, 0, 0, 0)],
      ['WAV, which begins like WebP', Buffer.from('RIFF\u0024\u0000\u0000\u0000WAVEfmt ')],
      ['AVIF', Buffer.from('\u0000\u0000\u0000\u001cftypavif')],
      ['PDF', '%PDF-1.7'],
      ['an image after something else', Buffer.concat([Buffer.from(' '), images['one.png']])],
      ['the first bytes of a PNG', images['one.png'].subarray(0, 4)],
    ]
    for (const [what, content] of contents) {
      const part = filePart(content, 'filename="photo.png"\r\nContent-Type: image/png')
      await subject.assertInvalid(await subject.sendForm(part), ['file'], what)
    }
  })

  test('422: errors of the image and of its name are reported at once', async () => {
    const answer = await subject.sendForm(textPart('file_name', 'a.exe'), filePart('hello'))
    await subject.assertInvalid(answer, ['file', 'file_name'])
  })
}

/** A malware scan accepts content of any kind. */
export function testAnyContent(subject: Subject) {
  test('content of any kind is accepted', async () => {
    for (const content of ['x', ' ', '\r\n', '\u0000', '--', Buffer.alloc(70_000), images['one.png'], '\r\n--x\r\n']) {
      await subject.assertAccepted(await subject.sendForm(filePart(content)), JSON.stringify(content).slice(0, 40))
    }
    const nested = toForm([filePart('inner')], 'inner')
    await subject.assertAccepted(await subject.sendForm(filePart(nested)), 'a form in a form')
  })
}
