import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import busboy from 'busboy'
import { newMultipartParser } from '../../src/domain/content/multipart.ts'
import { Problem } from '../../src/domain/problem.ts'

type Part = { name: string; filename: string | undefined; content: string }

const boundary = 'B0undary'

/** Parses the body in chunks of `pieceBytes`. */
function parse(body: Buffer, pieceBytes = body.length): Part[] {
  const parts: Part[] = []
  const parser = newMultipartParser({
    boundary,
    maxParts: 110,
    openPart({ name, filename }) {
      const chunks: Buffer[] = []
      return {
        write: (chunk) => void chunks.push(Buffer.from(chunk)),
        end: () => void parts.push({ name, filename, content: Buffer.concat(chunks).toString('latin1') }),
      }
    },
  })
  for (let at = 0; at < body.length; at += pieceBytes) parser.push(body.subarray(at, at + pieceBytes))
  parser.finish()
  return parts
}

function parseWithBusboy(body: Buffer): Promise<Part[]> {
  return new Promise((resolve, reject) => {
    const parts: Part[] = []
    const parser = busboy({
      headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
      defParamCharset: 'utf8',
      defCharset: 'latin1',
    })
    parser.on('field', (name, content) => parts.push({ name, filename: undefined, content }))
    parser.on('file', (name, file, { filename }) => {
      const chunks: Buffer[] = []
      const part: Part = { name, filename, content: '' }
      parts.push(part)
      file.on('data', (chunk: Buffer) => chunks.push(chunk))
      file.on('end', () => {
        part.content = Buffer.concat(chunks).toString('latin1')
      })
      file.on('error', () => {})
    })
    parser.once('error', reject).once('close', () => resolve(parts))
    parser.end(body)
  })
}

const toBody = (...parts: { header: string; content: string }[]) =>
  Buffer.from(
    [
      ...parts.map(({ header, content }) => `--${boundary}\r\n${header}\r\n\r\n${content}\r\n`),
      `--${boundary}--\r\n`,
    ].join(''),
    'latin1',
  )
const field = (name: string, content: string) => ({ header: `Content-Disposition: form-data; name="${name}"`, content })
const file = (content: string, disposition = 'name="file"; filename="a.bin"') => ({
  header: `Content-Disposition: form-data; ${disposition}\r\nContent-Type: application/octet-stream`,
  content,
})

describe('a form', () => {
  const hard = [
    'plain',
    '',
    '\r\n',
    '\r\n\r\n',
    '--',
    `--${boundary.slice(0, -1)}`,
    `\r\n--${boundary.slice(0, -1)}x`,
    '\r\n-\r\n--\r\n-',
    '\r\r\n\r',
    `x--${boundary}`,
  ]

  test('is read the same however it is cut into chunks', () => {
    for (const content of hard) {
      const body = toBody(field('file_name', 'x'), file(content), field('after', content))
      const whole = parse(body)
      assert.deepEqual(
        whole.map((part) => part.content),
        ['x', content, content],
        JSON.stringify(content),
      )
      for (let bytes = 1; bytes < 40; bytes++) assert.deepEqual(parse(body, bytes), whole, `${bytes} bytes a piece`)
    }
  })

  test('with a line that only begins like the boundary is refused: others would cut the file there', () => {
    for (const tail of ['x', '-', '-x', ' x', '\n', '\rx', `${' '.repeat(300)}\r\n`]) {
      const body = toBody(file(`abc\r\n--${boundary}${tail}def`))
      for (const bytes of [body.length, 1, 7])
        assert.throws(() => parse(body, bytes), isMalformed, JSON.stringify(tail))
    }
  })

  test('that ends before its closing delimiter is refused', () => {
    const body = toBody(file('hello'))
    for (let bytes = 0; bytes < body.length - 3; bytes++) {
      assert.throws(() => parse(body.subarray(0, bytes), 16), isMalformed, `${bytes} bytes`)
    }
  })

  test('may have a preamble and an epilogue, and blanks after a boundary', () => {
    const parts = Buffer.concat([Buffer.from('before\r\n'), toBody(file('x')), Buffer.from('after')])
    assert.equal(parse(parts, 5)[0]?.content, 'x')
    const padded = Buffer.from(toBody(file('x')).toString('latin1').replace(boundary, `${boundary}  \t`), 'latin1')
    assert.equal(parse(padded, 3)[0]?.content, 'x')
    assert.throws(() => parse(Buffer.concat([Buffer.alloc(70_000, 'x'), toBody(file('x'))])), isMalformed)
  })

  test('that goes on after its closing boundary is refused: some parsers read the last part, others the first', () => {
    const more = toBody(file('other'))
    for (const between of ['', '\r\n', 'epilogue\r\n']) {
      const body = Buffer.concat([toBody(file('hello')), Buffer.from(between), more])
      for (const bytes of [body.length, 1, 7]) assert.throws(() => parse(body, bytes), isMalformed, between)
    }
  })

  test('with a part that has two names, two headers of a kind, or odd lines in its header is refused', () => {
    const disposition = 'Content-Disposition: form-data; name="file"; filename="a"'
    const headers = [
      'Content-Disposition: form-data; name="file"; name="file_name"; filename="a"',
      'Content-Disposition: form-data; name=file; NAME=file; filename=a',
      `Content-Disposition: form-data; name="file_name"; name*=utf-8''file; filename="a"`,
      `Content-Disposition: form-data; name="note"; name*0="file"; filename="a"`,
      `X: y\n${disposition}`,
      `X: y\r${disposition}`,
      ` ${disposition}`,
      `X: y\r\n${disposition.replace(':', ' :')}`,
      `${disposition}\r\nContent-Disposition: form-data; name="other"`,
      'Content-Disposition: form-data; name="file"\r\nContent-Type: text/plain\r\ncontent-type: application/octet-stream',
    ]
    for (const header of headers) assert.throws(() => parse(toBody({ header, content: 'x' })), isMalformed, header)
  })

  test('with a part whose transfer encoding some parsers decode is refused', () => {
    const withEncoding = (line: string) => ({
      header: `Content-Disposition: form-data; name="file"; filename="a"\r\n${line}`,
      content: 'aGVsbG8=',
    })
    const refused = [
      'base64',
      'BASE64',
      'quoted-printable',
      'x-uuencode',
      'base64;x=y',
      'binary (base64)',
      '(a)base64',
      '',
    ]
    for (const value of [...refused, '\r\n base64', 'binary\r\nContent-Transfer-Encoding: base64']) {
      const body = toBody(withEncoding(`Content-Transfer-Encoding: ${value}`))
      assert.throws(() => parse(body), isMalformed, value)
    }
    const other = { header: 'Content-Type: text/plain\r\ncontent-transfer-encoding:base64', content: 'aGVsbG8=' }
    assert.throws(() => parse(toBody(other, file('x'))), isMalformed, 'a part without a name')
    for (const value of ['7bit', '8bit', 'binary', 'BINARY', ' Binary\t']) {
      const [part] = parse(toBody(withEncoding(`Content-Transfer-Encoding:${value}`)))
      assert.equal(part?.content, 'aGVsbG8=', value)
    }
  })

  test('with an endless header or too many parts is refused', () => {
    assert.throws(() => parse(toBody({ header: `X: ${'y'.repeat(20_000)}`, content: '' }), 1000), isMalformed)
    assert.throws(() => parse(toBody(...Array.from({ length: 111 }, () => field('a', 'b')))), isMalformed)
  })

  test('gives names as browsers and libraries write them', () => {
    const names: [disposition: string, name: string | undefined][] = [
      ['name="file"; filename="na\u00c3\u00afve.txt"', 'na\u00efve.txt'],
      ["name=file; filename=x.txt; filename*=utf-8''na%C3%AFve.txt", 'na\u00efve.txt'],
      ["name=file; filename*=iso-8859-1'en'na%EFve.txt", 'na\u00efve.txt'],
      ['name="file"; filename="C:\\dir\\a.txt"', 'a.txt'],
      ['name="file"; filename="/etc/passwd"', 'passwd'],
      ['name="file"; filename="a\\"b.txt"', 'a"b.txt'],
      ['name="file"; filename="a;b=c.txt"', 'a;b=c.txt'],
      ['name="file"; filename=""', ''],
      ['filename=x; name=file', 'x'],
    ]
    for (const [disposition, name] of names) assert.equal(parse(toBody(file('x', disposition)))[0]?.filename, name)
  })

  test('agrees with an established parser on everything that both take', async () => {
    const random = makeRandom(7)
    const pieces = ['a', '\r', '\n', '-', '--', boundary, `--${boundary}`, '\r\n', 'x'.repeat(50), '\u00ff\u0000']
    let compared = 0
    for (let round = 0; round < 800; round++) {
      const content = Array.from({ length: random(8) }, () => pieces[random(pieces.length)]).join('')
      const body = toBody(field('file_name', 'n'), file(content), field('z', `${round}`))
      const ours = attempt(() => parse(body, 1 + random(60)))
      const theirs = await parseWithBusboy(body).catch(() => undefined)
      if (ours === undefined || theirs === undefined) continue
      compared++
      assert.deepEqual(ours, theirs, JSON.stringify(content))
    }
    assert(compared > 250, `${compared} compared`)
  })
})

const isMalformed = (error: unknown) => error instanceof Problem && error.refusal.kind === 'malformed-request'

function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (isMalformed(error)) return undefined
    throw error
  }
}

/** The same numbers in every run. */
function makeRandom(seed: number) {
  let state = seed
  return (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return (state >>> 8) % below
  }
}

test('the usual header of a file is read as the same header in another form', () => {
  const types = [
    '',
    '\r\nContent-Type: text/plain',
    '\r\nContent-Type: text/plain; charset="a;b"',
    '\r\ncontent-type: ',
  ]
  const names = ['a.txt', '', 'a; name=x.txt', '/home/me/a :.txt', 'na\u00efve.txt', 'a%22.txt', "a'b=c"]
  // Characters that end a line for JavaScript, and for no parser of forms.
  for (const separator of ['\u2028', '\u2029']) names.push(Buffer.from(`a${separator}b :.txt`).toString('latin1'))
  for (const filename of names) {
    for (const type of types) {
      const usual = `Content-Disposition: form-data; name="file"; filename="${filename}"${type}`
      const other = `X-Other: 1\r\n${usual}`
      const [read, readOther] = [usual, other].map((header) => parse(toBody({ header, content: 'x' })))
      assert.equal(read?.length, 1)
      assert.deepEqual(read, readOther)
    }
  }
})
