import { test } from 'node:test'
import { goodUrl, type Subject } from './operation.ts'

const url = JSON.stringify(goodUrl)
const good = `{"file_url":${url}}`
const nest = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
/** A valid command of exactly so many bytes. */
const padTo = (bytes: number) => good.padEnd(bytes - 1).replace(/} *$/, (end) => `${end.slice(1)} }`)

/** Rules for reading a URL command, before its fields are checked. */
export function testJsonRules(subject: Subject) {
  const { send, sendJson } = subject
  const malformed = { status: 400, kind: 'malformed-request' } as const
  const tooLarge = { status: 413, kind: 'content-too-large' } as const
  const type = { 'content-type': 'application/json' }

  test('400: a body that is not JSON is refused', async () => {
    const texts = ['', ' ', '{', good.slice(0, -1), `${good}x`, `${good}${good}`, "{'file_url':1}", 'NaN', '{"a":1,}']
    for (const text of texts) await subject.assertRefused(await sendJson(text), malformed, text)
  })

  test('400: JSON that is not UTF-8 is refused', async () => {
    for (const bytes of [[0xff], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0xf8, 0x88, 0x80, 0x80, 0x80]]) {
      const body = Buffer.from(`{"file_url":"http://example.com/${String.fromCharCode(...bytes)}"}`, 'latin1')
      await subject.assertRefused(await sendJson(body), malformed, bytes.join())
    }
    await subject.assertRefused(await sendJson(Buffer.from(`\ufeff${good}`, 'utf16le')), malformed, 'UTF-16')
  })

  test('400: JSON that would reach the prototype is refused, however it is spelled', async () => {
    for (const name of ['"__proto__"', '"\\u005f_proto__"', '"__pr\\u006fto__"']) {
      await subject.assertRefused(await sendJson(`{"file_url":${url},${name}:{"a":1}}`), malformed, name)
      const deep = await sendJson(`{"file_url":${url},"deep":[{${name}:null}]}`)
      await subject.assertRefused(deep, malformed, `deep ${name}`)
    }
    await subject.assertAccepted(await sendJson(`{"file_url":${url},"note":"__proto__"}`), 'as a value it is text')
  })

  test('400: JSON deeper than 64 levels is refused, and brackets in text are not levels', async () => {
    await subject.assertAccepted(await sendJson(`{"file_url":${url},"x":${nest(63)}}`), '64 levels')
    await subject.assertRefused(await sendJson(`{"file_url":${url},"x":${nest(64)}}`), malformed, '65 levels')
    await subject.assertRefused(await sendJson('[{"a":'.repeat(5000)), malformed, 'deep and broken')
    await subject.assertAccepted(await sendJson(`{"file_url":${url},"x":"${nest(100)}\\"${nest(100)}"}`), 'text')
  })

  test('413: JSON over 64 KiB is refused, whether its length is announced or not', async () => {
    const [largest, over] = [padTo(65_536), padTo(65_537)]
    await subject.assertAccepted(await sendJson(largest), 'exactly 64 KiB')
    await subject.assertRefused(await sendJson(over), tooLarge, 'with a length')
    const chunked = await send({ headers: type, body: [Buffer.from(largest)] })
    await subject.assertAccepted(chunked, 'exactly 64 KiB in chunks')
    const waitsForAnswer = async function* (answered: Promise<unknown>) {
      yield Buffer.from(over)
      await answered
    }
    await subject.assertRefused(await send({ headers: type, body: waitsForAnswer }), tooLarge, 'without an end')
  })

  test('415: JSON in another charset than UTF-8 is refused', async () => {
    const withCharset = (charset: string) => ({ 'content-type': `application/json; charset=${charset}` })
    for (const charset of ['latin1', 'utf-16', 'utf-7']) {
      const answer = await send({ headers: withCharset(charset), body: good })
      await subject.assertRefused(answer, { status: 415, kind: 'unsupported-media-type' }, charset)
    }
    for (const charset of ['utf-8', 'UTF-8', '"utf-8"', 'utf8']) {
      await subject.assertAccepted(await send({ headers: withCharset(charset), body: good }), charset)
    }
  })

  test('a byte order mark, blanks and unknown members are ignored', async () => {
    for (const text of [`\ufeff${good}`, ` \r\n\t${good}\n`, `{"x":{"file_url":1},"":[],"file_url":${url}}`]) {
      await subject.assertAccepted(await sendJson(text), text)
    }
    const inherited = '"constructor":{"prototype":1},"toString":1,"hasOwnProperty":null'
    await subject.assertAccepted(await sendJson(`{"file_url":${url},${inherited}}`), inherited)
  })

  test('of a member given twice, the last one is checked and used', async () => {
    await subject.assertAccepted(await sendJson(`{"file_url":"ftp://example.com/","file_url":${url}}`))
    await subject.assertInvalid(await sendJson(`{"file_url":${url},"file_url":"http://127.0.0.1/"}`), ['file_url'])
    await subject.assertInvalid(await sendJson(`{"file_url":${url},"file_\\u0075rl":""}`), ['file_url'])
  })

  test('422: JSON that is not an object or has no file_url is refused for its file_url', async () => {
    const texts = `[] null 1 "file_url" true {} [${good}] {"file_url":null} {"File_Url":1}`
    for (const text of texts.split(' ')) {
      await subject.assertInvalid(await sendJson(text), ['file_url'], text)
    }
  })

  test('422: all errors of a command are reported at once', async () => {
    const answer = await sendJson('{"file_url":"","file_name":"","callback_url":"","id":"","file":""}')
    const { operation } = subject
    const isAsync = 'mode' in operation && operation.mode === 'async'
    await subject.assertInvalid(answer, isAsync ? ['file_url', 'file_name', 'callback_url'] : ['file_url', 'file_name'])
  })
}
