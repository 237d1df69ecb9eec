import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import * as clients from '../../packages/server/test/support/listener-clients.ts'
import { eicar, newEncryptedDocx, newZip } from './archives.ts'
import { listContentFiles } from './content-files.ts'
import { type Listeners, lacksClient, openTalk, runClient, talk, toLength, toStream } from './listeners.ts'
import { waitUntil } from './wait-until.ts'

const clamdscan = '/usr/bin/clamdscan'

/** Rules of the clamd listener, which clients cannot tell from a clamd. */
export function testClamdListener(subject: { listeners(): Listeners; dir(): string }) {
  const say = (...pieces: (Buffer | string)[]) => talk(subject.listeners().ports.clamd, ...pieces)
  const write = (name: string, content: Buffer | string) => {
    const path = join(subject.dir(), name)
    writeFileSync(path, content)
    return path
  }

  describe('to clamdscan', { skip: lacksClient(clamdscan, 'clamdscan') }, () => {
    const run = (...args: string[]) => {
      const config = write('clamd.conf', `TCPSocket ${subject.listeners().ports.clamd}\nTCPAddr 127.0.0.1\n`)
      return runClient(clamdscan, `--config-file=${config}`, ...args)
    }

    test('is a clamd: the test virus is found, the rest is OK', async () => {
      const before = await subject.listeners().countCharges()
      const files = [
        write('eicar.com', eicar),
        write('plain.txt', 'nothing to see'),
        write('large.bin', randomBytes(3_000_000)),
        write('packed.zip', newZip([{ name: 'a.com', data: eicar }])),
      ]
      const { code, out } = run('--stream', ...files)
      assert.equal(code, 1, out)
      assert.match(out, /eicar\.com: Eicar-Test-Signature FOUND\n.*plain\.txt: OK\n.*large\.bin: OK\n/)
      assert.match(out, /packed\.zip: Eicar-Test-Signature FOUND\n.*Infected files: 2\n/s)
      assert.equal(await subject.listeners().countCharges(), before + 4)
      await waitUntil('the content to go', () => listContentFiles(subject.listeners()).length === 0)
    })

    test('is one for many files at once', () => {
      const many = mkdtempSync(join(subject.dir(), 'many-'))
      for (let n = 0; n < 30; n++) writeFileSync(join(many, `${n}.txt`), n === 17 ? eicar : `file ${n}`)
      const { code, out } = run('--stream', '--multiscan', many)
      assert.equal(code, 1, out)
      assert.match(out, /17\.txt: Eicar-Test-Signature FOUND\n.*Infected files: 1\n/s)
      assert.doesNotMatch(out, /errors/)
    })

    test('says what it is', () => {
      assert.match(run('--ping', '1').out, /PONG/)
      assert.match(run('--version').out, /^ClamAV \d+\.\d+/)
    })

    test('finds what cannot be scanned, and fails for files of its own machine', () => {
      const locked = run('--stream', write('locked.docx', newEncryptedDocx()))
      assert.equal(locked.code, 1)
      assert.match(locked.out, /locked\.docx: Assay\.NotScanned\.EncryptedContent FOUND\n/)
      const local = run(write('local.txt', 'local'))
      assert.equal(local.code, 2)
      assert.match(local.out, /use INSTREAM\. ERROR/)
    })
  })

  test('every way to write a command gets its own end', async () => {
    assert.equal(await say('zPING\0'), 'PONG\0')
    assert.equal(await say('nPING\n'), 'PONG\n')
    assert.equal(await say('PING\r\n'), 'PONG\n')
    assert.equal(await say('PING'), 'PONG\n')
    assert.equal(await say('nINSTREAM\n', toStream(eicar)), 'stream: Eicar-Test-Signature FOUND\n')
    assert.equal(await say('INSTREAM\n', toStream('plain', 2)), 'stream: OK\n')
    assert.equal(await say('zWHATEVER\0'), 'UNKNOWN COMMAND\0')
    assert.match(await say('zVERSIONCOMMANDS\0'), /^ClamAV [\d.]+\| COMMANDS: PING .*INSTREAM/)
    assert.match(await say('nSTATS\n'), /^POOLS: 1\n.*THREADS: live 1 .*\nEND\n$/s)
  })

  test('what cannot be scanned is found, in every way to ask and by every kind of client', async () => {
    const found = 'stream: Assay.NotScanned.EncryptedContent FOUND'
    const locked = toStream(newEncryptedDocx())
    assert.equal(await say('zINSTREAM\0', locked), `${found}\0`)
    assert.equal(await say('nINSTREAM\n', locked), `${found}\n`)
    assert.equal(await say('INSTREAM\n', locked), `${found}\n`)
    assert.equal(
      await say('zIDSESSION\0zINSTREAM\0', locked, 'nINSTREAM\n', locked, 'zEND\0'),
      `1: ${found}\x002: ${found}\n`,
    )
    const { scanAsOcisClamd, scanAsDiscourse, scanAsNextcloudClamd, scanAsRspamdClamd, scanAsMattermost } = clients
    const all = [scanAsOcisClamd, scanAsDiscourse, scanAsNextcloudClamd, scanAsRspamdClamd, scanAsMattermost]
    for (const scan of all) {
      const port = subject.listeners().ports.clamd
      assert.equal(await scan(port, newEncryptedDocx()), 'infected')
      assert.equal(await scan(port, eicar), 'infected')
      assert.equal(await scan(port, Buffer.from('nothing to see')), 'accepted')
    }
  })

  test('a session numbers its answers, and charges each scan once', async () => {
    const before = await subject.listeners().countCharges()
    const said = await say(
      'zIDSESSION\0zINSTREAM\0',
      toStream('one'),
      'nPING\nzINSTREAM\0',
      toStream(eicar),
      'zINSTREAM\0',
      toStream(''),
      'zSCAN /etc/passwd\0zEND\0',
    )
    assert.deepEqual(said.split(/[\0\n]/), [
      '1: stream: OK',
      '2: PONG',
      '3: stream: Eicar-Test-Signature FOUND',
      '4: stream: OK',
      '5: SCAN: Files of this machine are not scanned; use INSTREAM. ERROR',
      '',
    ])
    assert.equal(await subject.listeners().countCharges(), before + 2, 'no content costs nothing')
  })

  test('the service is not for clients to stop or reload', async () => {
    for (const command of ['SHUTDOWN', 'RELOAD']) assert.match(await say(`z${command}\0`), / ERROR\0$/)
    assert.equal(await say('zPING\0'), 'PONG\0')
  })

  test('one byte over 100 MB is over the limit, and nothing is charged or left', async () => {
    const before = await subject.listeners().countCharges()
    const { socket, heard } = openTalk(subject.listeners().ports.clamd)
    socket.write('zINSTREAM\0')
    const piece = Buffer.concat([toLength(2 ** 20), Buffer.alloc(2 ** 20)])
    for (let n = 0; n < 100; n++) await new Promise((resolve) => socket.write(piece, resolve))
    socket.write(Buffer.concat([toLength(1), Buffer.of(0)]))
    await waitUntil('the answer', () => heard() !== '')
    assert.equal(heard(), 'stream: Assay.NotScanned.ContentTooLarge FOUND\0')
    socket.destroy()
    await waitUntil('the content to go', () => listContentFiles(subject.listeners()).length === 0)
    assert.equal(await subject.listeners().countCharges(), before)
  })

  test('a client that leaves leaves nothing behind', async () => {
    const before = await subject.listeners().countCharges()
    const { socket } = openTalk(subject.listeners().ports.clamd)
    socket.write(Buffer.concat([Buffer.from('zINSTREAM\0'), toStream(Buffer.alloc(3_000_000)).subarray(0, 2_900_000)]))
    await waitUntil('the content to come', () => listContentFiles(subject.listeners()).length === 1)
    socket.destroy()
    await waitUntil('the content to go', () => listContentFiles(subject.listeners()).length === 0)
    assert.equal(await subject.listeners().countCharges(), before)
    const metrics = await (await fetch(`http://127.0.0.1:${subject.listeners().metricsPort}/metrics`)).text()
    assert.match(metrics, /^assay_listener_connections\{listener="clamd",.*\} 0$/m)
  })
}
