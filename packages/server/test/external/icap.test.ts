import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { EngineDown } from '../../src/domain/ports/engines.ts'
import type { AdapterDeps } from '../../src/engines/external/adapter.ts'
import { icapKind, openIcapAdapter } from '../../src/engines/external/icap/icap-adapter.ts'
import { makeOptionReader } from '../../src/runtime/toml-options.ts'
import { newContent } from '../scans/scan-support.ts'
import { findMistakes } from './external-support.ts'
import {
  answering,
  goOn,
  noContent,
  openClient,
  optionsWith,
  previewOptions,
  scanOnce,
  startIcapServer,
  toBody,
  toMessage,
  usualOptions,
} from './icap-support.ts'

const signal = new AbortController().signal
const clean = { findings: [], version: 'Test 1 tag-1' }
const infected = (header: string) =>
  `ICAP/1.0 200 OK\r\nISTag: "tag-1"\r\n${header}\r\nEncapsulated: null-body=0\r\n\r\n`

describe('the answer of an ICAP server', () => {
  test('204 to all of the content is clean, and names the service and its tag', async () => {
    assert.deepEqual(await scanOnce(answering(noContent)), clean)
    assert.deepEqual(await scanOnce(answering(noContent), { method: 'REQMOD' }), clean)
    assert.deepEqual(await scanOnce(answering(noContent), { text: '' }), clean)
  })

  test('the headers of common products name what was found', async () => {
    const headers: [string, string[]][] = [
      ['X-Infection-Found: Type=0; Resolution=2; Threat=Eicar-Test-Signature;', ['Eicar-Test-Signature']],
      ['X-Infection-Found: Type=0; Resolution=1; Threat=EICAR test file', ['EICAR test file']],
      ['X-Infection-Found: nonsense', ['UnnamedThreat']],
      ['X-Virus-ID: EICAR Test String', ['EICAR Test String']],
      ['X-Virus-ID:', ['UnnamedThreat']],
      ['X-Virus-Name: W32/Test', ['W32/Test']],
      ['X-Violations-Found: 1\r\n\tdownload.zip\r\n\tEicar\r\n\t11101\r\n\t0', ['Eicar']],
      ['X-Violations-Found: 2\r\n\ta\r\n\tOne\r\n\t1\r\n\t0\r\n\tb\r\n\tTwo\r\n\t2\r\n\t0', ['One', 'Two']],
      ['X-Violations-Found: 2\r\n\ta\r\n\tOne\r\n\t1\r\n\t0', ['UnnamedThreat']],
      ['X-Violations-Found: yes', ['UnnamedThreat']],
      ['X-Infection-Found: Type=0; Resolution=2; Threat=Same;\r\nX-Virus-ID: Same\r\nX-Virus-Name:', ['Same']],
    ]
    for (const [header, findings] of headers) {
      assert.deepEqual((await scanOnce(answering(infected(header)))).findings, findings, header)
      const with204 = noContent.replace('Encapsulated', `${header}\r\nEncapsulated`)
      assert.deepEqual((await scanOnce(answering(with204))).findings, findings, `204 and ${header}`)
    }
    assert.deepEqual(
      (await scanOnce(answering(noContent.replace('ISTag', 'X-Violations-Found: 0\r\nISTag')))).findings,
      [],
    )
    const inner = toMessage('page', { head: 'HTTP/1.1 403 Forbidden\r\nX-Virus-ID: Inner' })
    assert.deepEqual((await scanOnce(answering(inner))).findings, ['Inner'])
  })

  test('the pattern of the operator reads the header of another product', async () => {
    const threatHeader = { header: 'X-Scan-Result', pattern: /^infected \((.+)\)$/u }
    const found = await scanOnce(answering(infected('x-scan-result: infected (Worm)')), { threatHeader })
    assert.deepEqual(found.findings, ['Worm'])
    const passed = await scanOnce(answering(noContent.replace('ISTag', 'X-Scan-Result: ok\r\nISTag')), { threatHeader })
    assert.deepEqual(passed.findings, [])
  })

  test('a header that is too long for the pattern of the operator is no answer', async () => {
    const threatHeader = { header: 'X-Result', pattern: /: (.+?)(?:x)? FOUND$/u }
    const long = noContent.replace('ISTag', `X-Result: ${': '.repeat(600)}\r\nISTag`)
    await assert.rejects(scanOnce(answering(long), { threatHeader }), /X-Result is longer than/)
  })

  test('a page in the place of the content, or other content, is a finding without a name', async () => {
    const blocked = toMessage('<h1>Blocked</h1>', { head: 'HTTP/1.1 403 Forbidden' })
    assert.deepEqual((await scanOnce(answering(blocked))).findings, ['BlockedContent'])
    assert.deepEqual((await scanOnce(answering(blocked), { method: 'REQMOD' })).findings, ['BlockedContent'])
    for (const body of ['some contend', 'some content!', 'some', '', undefined]) {
      assert.deepEqual((await scanOnce(answering(toMessage(body)))).findings, ['ChangedContent'], String(body))
    }
    const encoded = toMessage('some content', { head: 'HTTP/1.1 200 OK\r\nContent-Encoding: gzip' })
    assert.deepEqual((await scanOnce(answering(encoded))).findings, ['ChangedContent'])
    const moved = toMessage('some content', { head: 'POST http://elsewhere/ HTTP/1.1', section: 'req' })
    assert.deepEqual((await scanOnce(answering(moved), { method: 'REQMOD' })).findings, ['ChangedContent'])
  })

  test('the same content is clean only from a server that has no 204', async () => {
    const same = toMessage('some content')
    const without204 = optionsWith('Service: Test 1')
    assert.deepEqual(await scanOnce(answering(same, without204)), clean)
    const upload = toMessage('some content', { head: 'POST http://assay.invalid/a.txt HTTP/1.1', section: 'req' })
    assert.deepEqual(await scanOnce(answering(upload, without204), { method: 'REQMOD' }), clean)
    await assert.rejects(scanOnce(answering(same)), /passed the content back/)
  })

  test('a server that begins to pass content back before it has all of it is not believed', async () => {
    const text = 'x'.repeat(8 * 2 ** 20)
    const begun = toMessage(text).slice(0, 1000)
    await assert.rejects(scanOnce(answering(begun, optionsWith()), { text, isEarly: true }), /passed the content back/)
    await assert.rejects(scanOnce(answering(noContent), { text, isEarly: true }), /before it had the content/)
    const found = await scanOnce(answering(infected('X-Virus-ID: Early')), { text, isEarly: true })
    assert.deepEqual(found.findings, ['Early'])
  })

  test('errors that the content causes are doubts, all others mean that there is no answer', async () => {
    const error = (more: string) => `ICAP/1.0 500 Server Error\r\n${more}\r\n`
    const locked = await scanOnce(answering(error('X-Error-Code: password_protected\r\n')))
    assert.deepEqual(locked.doubts, ['EncryptedContent'])
    for (const status of ['201 Created', '206 Partial Content', '301 Moved', '404 Gone', '503 Overloaded']) {
      await assert.rejects(scanOnce(answering(`ICAP/1.0 ${status}\r\n\r\n`)), EngineDown, status)
    }
    await assert.rejects(scanOnce(answering(error('X-Infection-Found: Threat=None;\r\n'))), EngineDown)
  })
})

describe('a preview', () => {
  test('holds the whole of small content, and the rest follows when the server asks for it', async () => {
    const server = await startIcapServer(({ text }) => {
      if (text.startsWith('OPTIONS')) return previewOptions
      return text.includes('Preview: 8') && !text.includes('ieof') ? goOn : noContent
    })
    const adapter = openClient(server.port)
    for (const text of ['8 bytes.', 'longer than that', '']) {
      assert.deepEqual((await adapter.scan(newContent(text), { signal, fileName: 'a' })).findings, [], text)
    }
    await adapter.close()
    server.close()
    const bodies = server.seen
      .slice(1)
      .map(({ text }) => text.replace(/^RESPMOD.*\r\n\r\n(?=[0-9a-f]+(?:; ieof)?\r\n)/s, ''))
    assert.deepEqual(bodies, [
      '8\r\n8 bytes.\r\n0; ieof\r\n\r\n',
      '8\r\nlonger t\r\n0\r\n\r\n',
      '8\r\nhan that\r\n0\r\n\r\n',
      '0; ieof\r\n\r\n',
    ])
    assert.equal(server.countConnections(), 1)
  })

  test('that is enough for the server is no scan: the server gets all of the content', async () => {
    const server = await startIcapServer(({ text }) => {
      if (text.startsWith('OPTIONS')) return previewOptions
      return toBody(text).includes('virus') ? infected('X-Virus-ID: Late') : noContent
    })
    const adapter = openClient(server.port)
    const scan = (text: string) => adapter.scan(newContent(text), { signal, fileName: 'a.txt' })
    assert.deepEqual((await scan('harmless, then a virus')).findings, ['Late'])
    assert.deepEqual((await scan('harmless, to its end')).findings, [])
    await adapter.close()
    server.close()
    assert.deepEqual(
      server.seen.slice(1).map(({ text }) => text.includes('Preview:')),
      [true, false, true, false],
    )
  })

  test('is sent for the extensions that the server names', async () => {
    const options = optionsWith(
      'Allow: 204',
      'Preview: 8',
      'Transfer-Preview: *',
      'Transfer-Complete: exe, dll',
      'Transfer-Ignore: jpg',
    )
    const server = await startIcapServer(({ text }) => (text.startsWith('OPTIONS') ? options : noContent))
    const adapter = openClient(server.port)
    for (const fileName of ['a.txt', 'A.EXE', 'a.jpg', 'exe']) {
      await adapter.scan(newContent('short'), { signal, fileName })
    }
    await adapter.close()
    const plain = openClient(server.port, { usesPreview: false })
    await plain.scan(newContent('short'), { signal, fileName: 'a.txt' })
    await plain.close()
    server.close()
    const requests = server.seen.filter(({ text }) => !text.startsWith('OPTIONS'))
    assert.deepEqual(
      requests.map(({ text }) => text.includes('Preview:')),
      [true, false, false, true, false],
    )
  })
})

describe('the options of the kind icap', () => {
  const icap = { name: 'other', kind: 'icap', url: 'icap://scanner.example.com/avscan' }

  test('are complete', () => {
    const all = { method: 'REQMOD', preview: false, threat_header: 'X-Result', threat_pattern: '^infected (.+)$' }
    const secure = { name: 'tls', kind: 'icap', url: 'icaps://[::1]:11344/avscan?x=1', servername: 'scanner' }
    assert.deepEqual(findMistakes({ ...icap, ...all }, secure), [])
  })

  test('that are wrong are named', () => {
    const cases: [Record<string, unknown>, RegExp][] = [
      [{ name: 'other', kind: 'icap' }, /url is missing: add url = "icap:/],
      [{ ...icap, url: 'http://scanner/avscan' }, /url must be the address of a service/],
      [{ ...icap, url: 'icap://scanner:70000/avscan' }, /url must be the address of a service/],
      [{ ...icap, url: 'icap://scanner/a b' }, /url must be the address of a service/],
      [{ ...icap, method: 'OPTIONS' }, /method must be one of RESPMOD, REQMOD/],
      [{ ...icap, threat_header: 'X-Result' }, /threat_header and threat_pattern go together/],
      [{ ...icap, threat_header: 'X-Result', threat_pattern: '(' }, /threat_pattern must be a regular expression/],
      [{ ...icap, ca_file: '/etc/hostname' }, /ca_file is not an option of this kind/],
    ]
    for (const [values, mistake] of cases) assert.match(findMistakes(values)[0] ?? '', mistake, JSON.stringify(values))
  })
})

describe('an ICAP server with TLS', () => {
  test('must have a certificate that the operator trusts', async () => {
    const read = (name: string) => readFileSync(new URL(`../outbound/certificates/${name}`, import.meta.url), 'utf8')
    const server = createTlsServer({ cert: read('origin.crt'), key: read('origin.key') }, (socket) => {
      socket.on('error', () => {})
      socket.on('data', (chunk) => socket.write(chunk.toString().startsWith('OPTIONS') ? usualOptions : noContent))
    })
    server.on('tlsClientError', () => {})
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const servername = 'good.test'
    const open = (tls: object) =>
      openIcapAdapter(
        {
          address: { host: '127.0.0.1', port, tls },
          service: { url: `icaps://x:${port}/avscan`, host: 'x', method: 'RESPMOD', userAgent: 'Test' },
          usesPreview: true,
          threatHeader: undefined,
        },
        1,
      )
    const trusting = open({ ca: read('origin.crt'), servername })
    assert.deepEqual(await trusting.scan(newContent('text'), { signal, fileName: 'a' }), clean)
    const others = [open({ servername }), open({ ca: read('origin.crt'), servername: 'elsewhere.example' })]
    for (const other of others) {
      await assert.rejects(other.scan(newContent('text'), { signal, fileName: 'a' }), EngineDown)
    }
    for (const adapter of [trusting, ...others]) await adapter.close()
    server.close()
  })
})

describe('connections and options of an ICAP server', () => {
  test('are kept, and a connection that the server closed meanwhile is replaced', async () => {
    const server = await startIcapServer(answering(noContent))
    const adapter = openClient(server.port)
    const scan = () => adapter.scan(newContent('text'), { signal, fileName: 'a' })
    for (let count = 0; count < 3; count++) await scan()
    assert.equal(server.countConnections(), 1)
    server.dropConnections()
    // The client may not have noticed yet, and then sends into the void.
    assert.deepEqual((await scan()).findings, [])
    assert.equal(server.countConnections(), 2)
    assert.deepEqual(
      server.seen.filter(({ text }) => text.startsWith('OPTIONS')).map(({ order }) => order),
      [1],
    )
    await adapter.close()
    server.close()
  })

  test('are kept after the page about a threat, however many pages there were', async () => {
    const page = toMessage('x'.repeat(30_000), { head: 'HTTP/1.1 403 Forbidden', more: 'X-Virus-ID: Found\r\n' })
    const server = await startIcapServer(answering(page))
    const adapter = openClient(server.port)
    // The pages together are larger than what a connection keeps of one answer.
    for (let count = 0; count < 45; count++) {
      const scan = adapter.scan(newContent('text'), { signal: AbortSignal.timeout(20_000), fileName: 'a' })
      assert.deepEqual((await scan).findings, ['Found'])
    }
    await adapter.close()
    server.close()
  })

  test('a server that closes kept connections without an answer is asked once more, not for ever', async () => {
    const server = await startIcapServer(({ text, order }, socket) => {
      if (text.startsWith('OPTIONS')) return usualOptions
      if (order === 2) return noContent
      socket.destroy()
      return undefined
    })
    const adapter = openClient(server.port)
    const scan = () => adapter.scan(newContent('text'), { signal, fileName: 'a' })
    assert.deepEqual((await scan()).findings, [])
    await assert.rejects(scan(), EngineDown)
    assert.equal(server.countConnections(), 2)
    await adapter.close()
    server.close()
  })

  test('options are asked again after their time, and when the tag changes', async () => {
    let tag = 'tag-1'
    const server = await startIcapServer(({ text }) =>
      (text.startsWith('OPTIONS') ? usualOptions : noContent).replace('tag-1', tag),
    )
    const adapter = openClient(server.port)
    const scan = async () => (await adapter.scan(newContent('text'), { signal, fileName: 'a' })).version
    assert.equal(await scan(), 'Test 1 tag-1')
    tag = 'tag-2'
    assert.equal(await scan(), 'Test 1 tag-2')
    assert.equal(await scan(), 'Test 1 tag-2')
    await adapter.close()
    server.close()
    const isOptions = server.seen.map(({ text }) => text.startsWith('OPTIONS'))
    assert.deepEqual(isOptions, [true, false, false, true, false])
    const brief = await startIcapServer(answering(noContent, optionsWith('Allow: 204', 'Options-TTL: 0')))
    const other = openClient(brief.port)
    for (let count = 0; count < 2; count++) await other.scan(newContent('text'), { signal, fileName: 'a' })
    await other.close()
    brief.close()
    assert.equal(brief.seen.filter(({ text }) => text.startsWith('OPTIONS')).length, 2)
  })

  test('the server gets no more connections than it takes', async () => {
    let open = 0
    let most = 0
    const server = await startIcapServer(({ text }, socket) => {
      if (text.startsWith('OPTIONS')) return optionsWith('Allow: 204', 'Max-Connections: 2', 'Options-TTL: 0')
      most = Math.max(most, ++open)
      setImmediate(() => {
        open--
        socket.write(noContent)
      })
      return undefined
    })
    const adapter = openClient(server.port, { concurrency: 8 })
    const scan = () => adapter.scan(newContent('text'), { signal, fileName: 'a' })
    await scan()
    await Promise.all(Array.from({ length: 8 }, scan))
    assert.ok(most <= 2, `${most} at once`)
    assert.ok(server.countConnections() <= 2, `${server.countConnections()} connections, also for OPTIONS`)
    await adapter.close()
    server.close()
  })
})

test('a unix socket takes the place of the host in the address of the service', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-icap-'))
  const socket = join(dir, 'icap.sock')
  const server = await startIcapServer(answering(noContent), false, socket)
  const table = { origin: 'assay.toml', values: { url: 'icap://scanner.example.com/avscan', socket } }
  const mistakes: string[] = []
  const open = icapKind.read(makeOptionReader(table, mistakes, 'engine'))
  const adapter = await open({ concurrency: 1 } as AdapterDeps)
  t.after(async () => {
    await adapter.close()
    server.close()
    rmSync(dir, { recursive: true, force: true })
  })
  assert.deepEqual(await adapter.scan(newContent('some content'), { signal, fileName: 'a.txt' }), clean)
  assert.match(server.seen[0]?.text ?? '', /^OPTIONS icap:\/\/scanner\.example\.com\/avscan /)
  assert.deepEqual(mistakes, [])
  const secure = { name: 'a', kind: 'icap', url: 'icaps://scanner.example.com/avscan', socket }
  assert.match(findMistakes(secure).join(), /socket is for icap:\/\/ addresses/)
})
