import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { IcapFault } from '../../src/domain/icap/icap-message.ts'
import { type IcapEvent, newIcapParser } from '../../src/domain/icap/icap-parser.ts'
import { type IcapRequest, parseRequest } from '../../src/listeners/icap/icap-request.ts'
import { toBlockPage } from '../../src/listeners/icap/icap-response.ts'
import { toInfectionHeaders } from '../../src/listeners/listener-scan.ts'
import { everySplit, newRandom, spoil, toRandomPieces } from './splits.ts'

const get = 'GET http://x.test/a.zip HTTP/1.1\r\nHost: x.test\r\n\r\n'
const ok = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n'

/** Summarizes the events in words, with consecutive content joined. A fault is the last word. */
function parse(pieces: Buffer[], wantsRest = true): string[] {
  const parser = newIcapParser(parseRequest)
  const words: string[] = []
  let isContent = false
  try {
    for (const piece of pieces) {
      for (const event of parser.push(piece)) {
        if (event.kind === 'content') {
          if (isContent) words.push(`${words.pop()}${event.bytes.toString('latin1')}`)
          else words.push(`content ${event.bytes.toString('latin1')}`)
        } else words.push(toWord(event))
        isContent = event.kind === 'content'
        if (event.kind === 'preview-end' && wantsRest) parser.continueAfterPreview()
      }
    }
  } catch (error) {
    assert(error instanceof IcapFault, String(error))
    words.push(`fault ${error.status}`)
  }
  return words
}

function toWord(event: IcapEvent<IcapRequest> & { kind: 'head' | 'preview-end' | 'end' }): string {
  if (event.kind !== 'head') return event.kind === 'end' ? `end${event.inPreview ? ' in preview' : ''}` : event.kind
  const { method, service, preview, allows204, closes } = event.head
  const sections = Object.entries(event.headers).map(([name, bytes]) => `${name}:${bytes.length}`)
  return [method, service, preview, allows204 ? '204' : '', closes ? 'close' : '', ...sections].join(' ')
}

const request = (method: string, encapsulated: string, more = '') =>
  `${method} icap://127.0.0.1:1344/avscan ICAP/1.0\r\nHost: x\r\n${more}Encapsulated: ${encapsulated}\r\n\r\n`
const respmod = (more = '') =>
  `${request('RESPMOD', `req-hdr=0, res-hdr=${get.length}, res-body=${get.length + ok.length}`, more)}${get}${ok}`
const word = `RESPMOD avscan   `.trimEnd()

describe('the parser of ICAP requests', () => {
  const stream = Buffer.from(
    [
      'OPTIONS icap://127.0.0.1/avscan ICAP/1.0\r\nHost: x\r\n\r\n',
      `${request('REQMOD', `req-hdr=0, null-body=${get.length}`, 'Allow: 204, trailers\r\n')}${get}`,
      `${respmod('Preview: 4\r\n')}4\r\nabcd\r\n0\r\n\r\n3;x=y\r\nefg\r\n00\r\nTrailer: 1\r\n\r\n`,
      `${respmod('Preview: 9\r\nConnection: close\r\n')}2\r\nhi\r\n0; ieof\r\n\r\n`,
      `\r\n${respmod()}5\r\n\r\n0\r\n\r\n0\r\n\r\n`,
    ].join(''),
  )

  test('finds the same events wherever the stream is cut', () => {
    const sizes = `req-hdr:${get.length} res-hdr:${ok.length}`
    for (const pieces of everySplit(stream)) {
      assert.deepEqual(parse(pieces), [
        'OPTIONS avscan   ',
        'end',
        `REQMOD avscan  204  req-hdr:${get.length}`,
        'end',
        `${word} 4   ${sizes}`,
        'content abcd',
        'preview-end',
        'content efg',
        'end',
        `${word} 9  close ${sizes}`,
        'content hi',
        'end in preview',
        `${word}    ${sizes}`,
        'content \r\n0\r\n',
        'end',
      ])
    }
  })

  test('expects the next request after a preview that is not continued', () => {
    const pieces = [Buffer.from(`${respmod('Preview: 0\r\n')}0\r\n\r\nOPTIONS /avscan ICAP/1.0\r\n\r\n`)]
    assert.deepEqual(parse(pieces, false).slice(1), ['preview-end', 'OPTIONS avscan   ', 'end'])
  })

  const broken: [what: string, bytes: string, status: number][] = [
    ['a request that is not ICAP', 'GET / HTTP/1.1\r\n\r\n', 400],
    ['another version', 'OPTIONS icap://x/avscan ICAP/2.0\r\n\r\n', 505],
    ['another method', 'PURGE icap://x/avscan ICAP/1.0\r\n\r\n', 405],
    ['a missing request line', '\r\n'.repeat(100), 400],
    ['an endless line', `OPTIONS icap://${'x'.repeat(40_000)}`, 400],
    ['a header without a colon', 'OPTIONS icap://x/avscan ICAP/1.0\r\nHost\r\n\r\n', 400],
    ['a header over two lines', 'OPTIONS icap://x/avscan ICAP/1.0\r\nA: b\r\n c\r\n\r\n', 400],
    ['a missing Encapsulated header', 'RESPMOD icap://x/avscan ICAP/1.0\r\nHost: x\r\n\r\n', 400],
    ['two Encapsulated headers', `${request('RESPMOD', 'res-body=0', 'Encapsulated: res-body=0\r\n')}`, 400],
    ['offsets that do not grow', request('RESPMOD', 'req-hdr=0, res-hdr=50, res-body=50'), 400],
    ['offsets that go back', request('RESPMOD', 'req-hdr=0, res-hdr=50, res-body=20'), 400],
    ['a start that is not 0', request('RESPMOD', 'res-hdr=10, res-body=20'), 400],
    ['a negative offset', request('RESPMOD', 'res-hdr=-1, res-body=20'), 400],
    ['headers without end', request('RESPMOD', 'res-hdr=0, res-body=999999999'), 400],
    ['a missing body section', request('RESPMOD', 'req-hdr=0, res-hdr=50'), 400],
    ['the body of the other method', request('REQMOD', 'req-hdr=0, res-body=50'), 400],
    ['sections in another order', request('RESPMOD', 'res-hdr=0, req-hdr=50, res-body=90'), 400],
    ['a section twice', request('RESPMOD', 'req-hdr=0, req-hdr=50, res-body=90'), 400],
    ['a section that ends elsewhere', `${request('REQMOD', `req-hdr=0, null-body=${get.length - 1}`)}${get}`, 400],
    ['two headers in one section', `${request('REQMOD', `req-hdr=0, null-body=${2 * get.length}`)}${get}${get}`, 400],
    ['a preview that is not a number', respmod('Preview: many\r\n'), 400],
    ['a preview that is too large', respmod('Preview: 9999999\r\n'), 400],
    ['more preview than announced', `${respmod('Preview: 2\r\n')}3\r\nabc\r\n`, 400],
    ['a chunk that is longer than it says', `${respmod()}2\r\nabc\r\n0\r\n\r\n`, 400],
    ['an invalid chunk size', `${respmod()}xyz\r\n`, 400],
    ['a negative chunk size', `${respmod()}-1\r\n`, 400],
    ['a huge chunk size', `${respmod()}fffffffff\r\n`, 400],
    ['an endless chunk extension', `${respmod()}1;${'x'.repeat(2000)}`, 400],
    ['an endless trailer', `${respmod()}0\r\n${`a: ${'b'.repeat(500)}\r\n`.repeat(20)}`, 400],
  ]
  for (const [what, bytes, status] of broken) {
    test(`answers ${status} to ${what}`, () => {
      assert.equal(parse([Buffer.from(bytes)]).at(-1), `fault ${status}`)
      assert.equal(parse(toPieces(Buffer.from(bytes), bytes.length > 10_000 ? 50 : 1)).at(-1), `fault ${status}`)
    })
  }

  test('finds the same events in damaged streams wherever they are cut', () => {
    const random = newRandom(11)
    for (let round = 0; round < 600; round++) {
      const bytes = spoil(stream, random)
      assert.deepEqual(parse(toRandomPieces(bytes, random)), parse([bytes]), bytes.toString('latin1'))
    }
  })
})

const toPieces = (bytes: Buffer, pieceBytes: number) =>
  Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, i) =>
    bytes.subarray(i * pieceBytes, (i + 1) * pieceBytes),
  )

const hostile = '<script>alert(1)</script>"\r\nSet-Cookie: a=b;é'

test('the block page escapes names, and its headers stay on one line', () => {
  const threat = { is: 'threat' as const, names: [hostile] }
  const { head, body } = toBlockPage(threat, '"><b>')
  const page = body.toString()
  assert.doesNotMatch(page, /<script|<b>/)
  assert.match(page, /&lt;script&gt;alert\(1\)/)
  assert.match(head.toString(), new RegExp(`^HTTP/1.1 403 Forbidden\r\n(.*\r\n)*Content-Length: ${body.length}\r\n`))
  const headers = toInfectionHeaders(threat)
  for (const value of Object.values(headers)) assert.match(value, /^[\x20-\x7e]*$/)
  assert.equal(headers['X-Virus-ID'].includes(';'), false)
})

test('the block page of content that was not scanned gives all reasons', () => {
  const verdict = { is: 'not-scanned' as const, names: ['EncryptedContent', 'ScanLimitExceeded'] }
  const page = toBlockPage(verdict, 'abc').body.toString()
  assert.match(page, /could not be scanned.*EncryptedContent, ScanLimitExceeded.*abc/s)
})
