import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import * as clients from '../../packages/server/test/support/listener-clients.ts'
import { eicar, newEncryptedDocx } from './archives.ts'
import { listContentFiles } from './content-files.ts'
import { type Listeners, lacksClient, openTalk, runClient, talk, toIcap } from './listeners.ts'
import { waitUntil } from './wait-until.ts'

const icapClient = '/usr/bin/c-icap-client'
const allow = 'Allow: 204\r\n'
const close = 'Connection: close\r\n'

/**
 * Rules of the ICAP listener, which clients cannot tell from another antivirus server. A second listener, `small`,
 * takes no more than 2 MB.
 */
export function testIcapListener(subject: { listeners(): Listeners; dir(): string }) {
  const say = (...pieces: (Buffer | string)[]) => talk(subject.listeners().ports.icap, ...pieces)
  const countCharges = () => subject.listeners().countCharges()
  const options = `OPTIONS icap://127.0.0.1/avscan ICAP/1.0\r\n${close}\r\n`
  const write = (name: string, content: Buffer | string) => {
    const path = join(subject.dir(), name)
    writeFileSync(path, content)
    return path
  }
  /** Checks the response to a blocked message: headers for the proxy and the page for its user. */
  const blocked = (name: string) =>
    new RegExp(
      `^ICAP/1.0 200 OK\r\n[\\s\\S]*Encapsulated: res-hdr=0, res-body=\\d+\r\n\r\nHTTP/1.1 403 [\\s\\S]*<dd>${name}</dd>`,
    )

  describe('to c-icap-client', { skip: lacksClient(icapClient, 'c-icap-client') }, () => {
    const run = (...args: string[]) => runFor('avscan', ...args)
    const runFor = (service: string, ...args: string[]) => {
      const saved = join(subject.dir(), 'saved')
      rmSync(saved, { force: true })
      const place = ['-i', '127.0.0.1', '-p', String(subject.listeners().ports.icap), '-s', service, '-v', '-o', saved]
      const { out } = runClient(icapClient, ...place, ...args)
      return { out, saved: existsSync(saved) ? readFileSync(saved) : Buffer.alloc(0) }
    }
    const ways = [
      ['RESPMOD', '-resp', 'http://x.test/a'],
      ['REQMOD', '-req', 'http://x.test/a', '-method', 'POST'],
    ]

    test('tells what it can do', () => {
      const { out } = run()
      assert.match(out, /Allow 204: Yes.*Preview: 1024.*Keep alive: Yes/s)
      assert.match(out, /Methods: REQMOD, RESPMOD/)
    })

    test('sees that content could not be scanned, by either service', () => {
      const locked = write('locked.docx', newEncryptedDocx())
      const { out, saved } = run('-f', locked, '-resp', 'http://x.test/a')
      assert.match(out, /X-Infection-Found: Type=2; Resolution=2; Threat=Assay\.NotScanned\.EncryptedContent;/)
      assert.match(saved.toString(), /could not be scanned.*EncryptedContent/s)
      const errors = runFor('avscan-errors', '-f', locked, '-resp', 'http://x.test/a')
      assert.match(errors.out, /ICAP\/1\.0 500 .*X-Error-Code: password_protected/s)
    })

    for (const [method = '', ...way] of ways) {
      test(`${method}: 204 for what is clean, a page for the test virus`, async () => {
        const before = await countCharges()
        const clean = run('-f', write('clean', 'nothing to see'), ...way)
        assert.match(clean.out, /ICAP\/1\.0 204 No Content/)
        const { out, saved } = run('-f', write('eicar', eicar), ...way)
        assert.match(out, /X-Infection-Found: Type=0; Resolution=2; Threat=Eicar-Test-Signature;/)
        assert.match(out, /X-Virus-ID: Eicar-Test-Signature.*HTTP\/1\.1 403 Forbidden/s)
        assert.match(saved.toString(), /a threat was found.*Eicar-Test-Signature/s)
        assert.equal(await countCharges(), before + 2)
      })

      test(`${method}: without 204 the message comes back as it was`, async () => {
        // Content that fits into the preview may be answered with 204 as well.
        for (const content of [randomBytes(20_000), randomBytes(3_000_000)]) {
          for (const more of [[], ['-nopreview']]) {
            const { out, saved } = run('-no204', ...more, '-f', write('back', content), ...way)
            assert.match(out, /ICAP\/1\.0 200 OK/)
            assert(saved.equals(content), `${content.length} bytes became ${saved.length}`)
          }
        }
        await waitUntil('the content to go', () => listContentFiles(subject.listeners()).length === 0)
      })
    }
  })

  test('what has no content costs nothing and goes through at once', async () => {
    const before = await countCharges()
    assert.match(await say(toIcap('REQMOD', undefined, { icap: allow + close })), /^ICAP\/1\.0 204 /)
    assert.match(await say(toIcap('REQMOD', '', { icap: allow + close })), /^ICAP\/1\.0 204 /)
    assert.match(
      await say(toIcap('REQMOD', '', { icap: `Preview: 0\r\n${close}`, end: '0; ieof\r\n\r\n' })),
      /1\.0 204 /,
    )
    const echoed = await say(toIcap('RESPMOD', undefined, { icap: close, http: 'X-Own: 1\r\n' }))
    assert.match(
      echoed,
      /^ICAP\/1\.0 200 OK\r\n.*Encapsulated: res-hdr=0, null-body=29\r\n\r\nHTTP\/1\.1 200 OK\r\nX-Own: 1\r\n\r\n$/s,
    )
    assert.equal(await countCharges(), before)
  })

  test('a connection serves one message after the other, previewed or not', async () => {
    const before = await countCharges()
    const { socket, heard } = openTalk(subject.listeners().ports.icap)
    const statuses = () => [...heard().matchAll(/ICAP\/1\.0 (\d+)/g)].map(([, status]) => status).join(' ')
    socket.write(
      Buffer.concat([toIcap('RESPMOD', 'first', { icap: allow }), toIcap('REQMOD', undefined, { icap: allow })]),
    )
    await waitUntil('two answers', () => statuses() === '204 204')
    socket.write(toIcap('RESPMOD', eicar.subarray(0, 30), { icap: `Preview: 30\r\n${allow}` }))
    await waitUntil('the word to go on', () => statuses() === '204 204 100')
    socket.write(Buffer.concat([Buffer.from('26\r\n'), eicar.subarray(30), Buffer.from('\r\n0\r\n\r\n')]))
    await waitUntil('the page', () => heard().includes('</html>'))
    socket.write(toIcap('RESPMOD', 'whole', { icap: `Preview: 30\r\n${close}`, end: '0; ieof\r\n\r\n' }))
    await waitUntil('the end', () => socket.readableEnded)
    assert.equal(statuses(), '204 204 100 200 204')
    assert.match(heard(), /Threat=Eicar-Test-Signature/)
    assert.equal(await countCharges(), before + 3)
  })

  test('a result has the name from the address', async () => {
    await say(toIcap('RESPMOD', 'with a name', { icap: allow + close }))
    await waitUntil('the result', async () =>
      (await subject.listeners().listResults()).some(({ content_name }) => content_name === 'a file.bin'),
    )
  })

  test('what is packed for the way is looked into, or blocked', async () => {
    const packed = (encoding: string, content: Buffer) =>
      say(toIcap('RESPMOD', content, { icap: allow + close, http: `Content-Encoding: ${encoding}\r\n` }))
    assert.match(await packed('gzip', gzipSync(eicar)), blocked('Eicar-Test-Signature'))
    assert.match(await packed('gzip', gzipSync('plain')), /^ICAP\/1\.0 204 /)
    const before = await countCharges()
    for (const encoding of ['br', 'deflate', 'gzip, gzip', 'whatever']) {
      assert.match(await packed(encoding, eicar), blocked('UnsupportedEncoding'))
    }
    assert.equal(await countCharges(), before)
  })

  test('each file of a form is looked at, and paid for beside the form', async () => {
    const send = (parts: string, encoding = '') =>
      say(
        toIcap('REQMOD', parts, {
          icap: allow + close,
          http: `Content-Type: multipart/form-data; boundary=BB\r\n${encoding}`,
        }),
      )
    const file = (content: Buffer | string, name: string) =>
      `--BB\r\nContent-Disposition: form-data; name="f"; filename="${name}"\r\n\r\n${content.toString('latin1')}\r\n`
    const before = await countCharges()
    assert.match(await send(`${file('one', 'a.txt')}${file('two', 'b.txt')}--BB--\r\n`), /^ICAP\/1\.0 204 /)
    assert.equal(await countCharges(), before + 3)
    const bad = `${file('one', 'a.txt')}${file(eicar, 'b.com')}--BB--\r\n`
    assert.match(await send(bad), blocked('Eicar-Test-Signature'))
    // A cut form could be read as another form, and a compressed one is not read at all.
    assert.match(await send(file('one', 'a.txt')), blocked('MalformedForm'))
    // Some applications decode such a file, and would store other bytes than were scanned.
    const inBase64 = `${file('b25l', 'c.txt')}--BB--\r\n`.replace(
      '\r\n\r\n',
      '\r\nContent-Transfer-Encoding: base64\r\n\r\n',
    )
    assert.match(await send(inBase64), blocked('MalformedForm'))
    assert.match(await send(bad, 'Content-Encoding: gzip\r\n'), blocked('UnsupportedEncoding'))
    await waitUntil('the result', async () =>
      (await subject.listeners().listResults()).some(({ content_name }) => content_name === 'b.com'),
    )
  })

  test('what cannot be scanned is blocked, with a reason and a reference', async () => {
    const said = await say(toIcap('RESPMOD', newEncryptedDocx(), { icap: allow + close }))
    assert.match(said, blocked('EncryptedContent'))
    assert.match(said, /X-Infection-Found: Type=2; Resolution=2; Threat=Assay\.NotScanned\.EncryptedContent;\r\n/)
    await waitUntil('the result', async () =>
      (await subject.listeners().listResults()).some(
        ({ id, status }) => status === 'error' && said.includes(`<dd>${id}</dd>`),
      ),
    )
  })

  test('every kind of client sees that content could not be scanned', async () => {
    const port = subject.listeners().ports.icap
    const locked = newEncryptedDocx()
    const { scanAsOcisIcap, scanAsRspamdIcap, scanAsNextcloudIcap } = clients
    const asNextcloud = (target: number, content: Buffer) => scanAsNextcloudIcap(target, content, 'avscan')
    for (const scan of [scanAsOcisIcap, scanAsRspamdIcap, asNextcloud]) {
      assert.equal(await scan(port, locked), 'infected')
      assert.equal(await scan(port, eicar), 'infected')
      assert.equal(await scan(port, Buffer.from('nothing to see')), 'accepted')
      assert.equal(await scan(port, randomBytes(50_000)), 'accepted')
    }
  })

  test('the service avscan-errors tells what cannot be scanned from what is infected', async () => {
    const port = subject.listeners().ports.icap
    const scan = (content: Buffer) => clients.scanAsNextcloudIcap(port, content, 'avscan-errors')
    assert.equal(await scan(newEncryptedDocx()), 'unscannable')
    assert.equal(await scan(eicar), 'infected')
    assert.equal(await scan(Buffer.from('nothing to see')), 'accepted')
    const said = await say(toIcap('RESPMOD', newEncryptedDocx(), { icap: allow + close, service: 'avscan-errors' }))
    assert.match(said, /^ICAP\/1\.0 500 .*X-Error-Code: password_protected\r\n/s)
    assert.doesNotMatch(said, /X-Infection-Found|HTTP\//)
  })

  test('what is too large is blocked before it is sent, where its length is known', async () => {
    const before = await countCharges()
    const http = `Content-Length: ${100 * 2 ** 20 + 1}\r\n`
    const said = await say(toIcap('RESPMOD', 'begin', { icap: `Preview: 5\r\n${close}`, http }))
    assert.match(said, blocked('ContentTooLarge'))
    const { socket, heard } = openTalk(subject.listeners().findPort('small'))
    socket.write(toIcap('RESPMOD', 'begin', { icap: allow, end: '' }))
    const piece = Buffer.concat([Buffer.from('100000\r\n'), Buffer.alloc(2 ** 20), Buffer.from('\r\n')])
    for (let n = 0; n < 2; n++) await new Promise((resolve) => socket.write(piece, resolve))
    await waitUntil('the page', () => heard().includes('</html>'))
    socket.destroy()
    assert.match(heard(), blocked('ContentTooLarge'))
    await waitUntil('the content to go', () => listContentFiles(subject.listeners()).length === 0)
    assert.equal(await countCharges(), before)
  })

  test('a client that leaves leaves nothing behind', async () => {
    const before = await countCharges()
    const { socket } = openTalk(subject.listeners().ports.icap)
    socket.write(toIcap('RESPMOD', Buffer.alloc(2_000_000), { end: '' }))
    await waitUntil('the content to come', () => listContentFiles(subject.listeners()).length === 1)
    socket.destroy()
    await waitUntil('the content to go', () => listContentFiles(subject.listeners()).length === 0)
    assert.equal(await countCharges(), before)
  })

  const hostile: [what: string, bytes: Buffer | string, status: number][] = [
    ['HTTP', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['another service', `OPTIONS icap://x/other ICAP/1.0\r\n\r\n`, 404],
    ['another method', `PUT icap://x/avscan ICAP/1.0\r\n\r\n`, 405],
    ['another version', `OPTIONS icap://x/avscan ICAP/1.1\r\n\r\n`, 505],
    ['a giant header', `OPTIONS icap://x/avscan ICAP/1.0\r\nX: ${'x'.repeat(50_000)}`, 400],
    ['broken offsets', `RESPMOD icap://x/avscan ICAP/1.0\r\nEncapsulated: res-hdr=9, res-body=4\r\n\r\n`, 400],
    ['an endless preview', toIcap('RESPMOD', Buffer.alloc(100_000), { icap: 'Preview: 10\r\n', end: '' }), 400],
    ['a bad chunk', toIcap('RESPMOD', 'abc', { end: 'zz\r\n' }), 400],
  ]
  for (const [what, bytes, status] of hostile) {
    test(`${what}: ${status}, and the connection is closed`, async () => {
      const said = await say(bytes)
      assert.match(said, new RegExp(`^ICAP/1\\.0 ${status} [\\s\\S]*Connection: close`))
      assert.match(said, /X-Infection-Found: Type=2; Resolution=2; Threat=Assay\.NotScanned\.InvalidRequest;/)
    })
  }

  test('the tag changes with the signatures', async () => {
    const readTag = async () => /ISTag: ("[0-9a-f]{1,30}")/.exec(await say(options))?.[1]
    const before = await readTag()
    assert(before !== undefined)
    assert.equal(await readTag(), before)
    await subject
      .listeners()
      .operate('signatures', 'add', write('new.ndb', `Test.Door:0:*:${Buffer.from('a new one').toString('hex')}\n`))
    await waitUntil('another tag', async () => (await readTag()) !== before)
  })
}
