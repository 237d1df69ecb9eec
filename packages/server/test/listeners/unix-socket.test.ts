import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, lstatSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect, createServer, Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, describe, type TestContext, test } from 'node:test'
import type { Connection, LastReplies } from '../../src/listeners/connection.ts'
import { toFailureResponse } from '../../src/listeners/icap/icap-response.ts'
import type { SocketAccess } from '../../src/listeners/listen-address.ts'
import { type Listener, openListener } from '../../src/listeners/listener.ts'
import { abortedFailure, incompleteFailure } from '../../src/listeners/listener-scan.ts'
import { newEndlessScans } from '../support/endless-scans.ts'
import * as clients from '../support/listener-clients.ts'
import { silentLog } from '../support/silent-log.ts'
import { waitFor } from '../support/wait-for.ts'

const access: SocketAccess = { mode: 0o660, uid: undefined, gid: undefined }

describe('a listener on a unix socket', () => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-unix-'))
  after(() => rmSync(dir, { recursive: true, force: true }))
  let listeners: Listener[] = []
  let count = 0
  const newPath = () => join(dir, `${count++}.sock`)
  afterEach(async () => {
    for (const listener of listeners) await listener.close()
    listeners = []
  })

  const answer = async (connection: Connection) => {
    for await (const chunk of connection.chunks()) {
      if (chunk.includes('bug')) throw new Error('a fault')
      await connection.send(`answer to ${chunk}\n`)
      return
    }
  }

  async function open(
    path: string,
    serve = answer,
    replies: LastReplies = { timeout: 'late\n', fail: ({ names: [reason] }) => `${reason}\n` },
    given = access,
  ) {
    const failures: unknown[] = []
    const listener = await openListener({
      address: { path, access: given },
      maxConnections: 10,
      serve,
      replies,
      onFailure: (error) => failures.push(error),
      onRejected() {},
      log: silentLog,
    })
    listeners.push(listener)
    return { listener, failures }
  }

  async function ask(path: string, text = 'hello'): Promise<string> {
    const socket = connect({ path })
    let heard = ''
    socket.on('error', (error: NodeJS.ErrnoException) => {
      heard += error.code
    })
    socket.on('data', (chunk) => {
      heard += chunk
    })
    socket.write(text)
    await waitFor(() => socket.closed)
    return heard
  }

  /** Leaves a socket behind as a killed service does. */
  async function leaveSocket(path: string) {
    const program = `require('net').createServer().listen(${JSON.stringify(path)}, () => console.log('ready'))`
    const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    child.kill('SIGKILL')
    await once(child, 'exit')
    assert.equal(lstatSync(path).isSocket(), true)
  }

  test('has the permissions that are set, and goes with the listener', async () => {
    const path = newPath()
    const { listener } = await open(path, answer, undefined, { mode: 0o606, uid: process.getuid?.(), gid: undefined })
    assert.equal((statSync(path).mode & 0o777).toString(8), '606')
    assert.equal(await ask(path), 'answer to hello\n')
    assert.equal(listener.port, 0)
    await listener.close()
    assert.throws(() => lstatSync(path), { code: 'ENOENT' })
    await open(path)
    assert.equal(await ask(path), 'answer to hello\n')
  })

  test('is open to no other user before it has its permissions', async (t) => {
    const path = newPath()
    const mask = process.umask(0)
    t.after(() => process.umask(mask))
    const modes: string[] = []
    const { listen } = Server.prototype
    t.mock.method(Server.prototype, 'listen', function (this: Server, ...args: Parameters<typeof listen>) {
      const result = listen.apply(this, args)
      modes.push((statSync(path).mode & 0o777).toString(8))
      return result
    })
    await open(path, answer, undefined, { mode: 0o666, uid: undefined, gid: undefined })
    modes.push((statSync(path).mode & 0o777).toString(8))
    assert.deepEqual(modes, ['700', '666'])
    assert.equal(process.umask(), 0)
  })

  test('replaces a socket that a killed service left behind', async () => {
    const path = newPath()
    await leaveSocket(path)
    await open(path)
    assert.equal(await ask(path), 'answer to hello\n')
  })

  test('leaves files, links and directories alone', async () => {
    const [file, link, target] = [newPath(), newPath(), newPath()]
    writeFileSync(file, 'a document')
    await assert.rejects(open(file), /exists and is not a socket/)
    assert.equal(readFileSync(file, 'utf8'), 'a document')
    await leaveSocket(target)
    symlinkSync(target, link)
    await assert.rejects(open(link), /exists and is not a socket/)
    await assert.rejects(open(dir), /exists and is not a socket/)
    assert.equal(lstatSync(link).isSymbolicLink(), true)
    assert.equal(lstatSync(target).isSocket(), true)
  })

  test('leaves the socket of a living process alone, be it Assay or another program', async () => {
    const other = newPath()
    const server = createServer((socket) => socket.on('error', () => {}).end('other\n'))
    await new Promise<void>((resolve) => server.listen(other, resolve))
    await assert.rejects(open(other), /another process listens on/)
    assert.equal(await ask(other), 'other\n')
    server.close()
    const own = newPath()
    await open(own)
    await assert.rejects(open(own), new RegExp(`process ${process.pid} uses`))
    assert.equal(await ask(own), 'answer to hello\n')
  })

  test('of two that start at the same time, one gets the socket', async () => {
    const path = newPath()
    await leaveSocket(path)
    const results = await Promise.allSettled([open(path), open(path), open(path)])
    assert.deepEqual(results.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected', 'rejected'])
    assert.equal(await ask(path), 'answer to hello\n')
  })

  test('tells why a path cannot be used', async () => {
    await assert.rejects(open(join(dir, 'missing', 'a.sock')), { code: 'ENOENT' })
    const path = newPath()
    const foreign = { mode: 0o660, uid: 4_000_000, gid: undefined }
    if (process.getuid?.() !== 0) await assert.rejects(open(path, answer, undefined, foreign), { code: 'EPERM' })
    const closed = mkdtempSync(join(dir, 'closed-'))
    chmodSync(closed, 0o500)
    if (process.getuid?.() !== 0) await assert.rejects(open(join(closed, 'a.sock')), { code: 'EACCES' })
  })

  test('sends a reply in place of a reset, which a unix socket does not have', async () => {
    const path = newPath()
    const { listener, failures } = await open(path)
    assert.equal(await ask(path, 'bug'), 'ServiceUnavailable\n')
    assert.equal(failures.length, 1)
    const idle = ask(path, '')
    await waitFor(() => listener.countConnections() === 1)
    listener.startStopping(1000)
    assert.equal(await idle, 'ServiceUnavailable\n')
  })

  test('a stop during a scan is not taken for clean by any client', async () => {
    const content = Buffer.from('content')
    const clamd = [clients.scanAsOcisClamd, clients.scanAsDiscourse, clients.scanAsNextcloudClamd]
    const icap = [clients.scanAsOcisIcap, clients.scanAsRspamdIcap]
    const [clamdPath, icapPath] = [newPath(), newPath()]
    const { clamd: ofClamd, icap: ofIcap, state } = newEndlessScans()
    await open(clamdPath, ofClamd.serve, ofClamd.replies)
    await open(icapPath, ofIcap.serve, ofIcap.replies)
    const outcomes = Promise.all([
      ...clamd.map((scan) => scan(clamdPath, content)),
      ...icap.map((scan) => scan(icapPath, content)),
    ])
    await waitFor(() => state.begun === 5)
    for (const listener of listeners) listener.startStopping(0)
    assert.deepEqual(await outcomes, ['infected', 'infected', 'infected', 'infected', 'failed'])
    listeners = []
  })
})

/** Requests that end too early, and the reply of a transport without resets. */
const incomplete = [
  ['clamd', 'zINSTREAM\0\0\0\0\x05con', 'stream: Assay.NotScanned.InvalidRequest FOUND\0'],
  ['clamd', 'nINSTREAM\n', 'stream: Assay.NotScanned.InvalidRequest FOUND\n'],
  ['clamd', 'zINSTREAM', 'stream: Assay.NotScanned.InvalidRequest FOUND\0'],
  ['clamd', 'zIDSESSION\0zINSTREAM', '1: stream: Assay.NotScanned.InvalidRequest FOUND\0'],
  ['icap', 'RESPMOD icap://x/avscan ICAP/1.0\r\nHost: x\r\n', toFailureResponse(incompleteFailure)],
  [
    'icap',
    'RESPMOD icap://x/avscan ICAP/1.0\r\nHost: x\r\nEncapsulated: res-hdr=0, res-body=40\r\n\r\nHTTP/1.1 200 OK\r\n',
    toFailureResponse(incompleteFailure),
  ],
] as const

/** Opens a listener over TCP or a unix socket, and returns a function that opens connections to it. */
async function openFor(
  t: TestContext,
  place: string,
  { serve, replies }: { serve(connection: Connection): Promise<void>; replies: LastReplies },
) {
  const dir = mkdtempSync(join(tmpdir(), 'assay-transport-'))
  const path = join(dir, 'a.sock')
  const failures: unknown[] = []
  const listener = await openListener({
    address: place === 'tcp' ? { host: '127.0.0.1', port: 0 } : { path, access },
    maxConnections: 10,
    serve,
    replies,
    onFailure: (error) => failures.push(error),
    onRejected() {},
    log: silentLog,
  })
  t.after(() => {
    listener.startStopping(0)
    rmSync(dir, { recursive: true, force: true })
  })
  const dial = () => {
    const socket = place === 'tcp' ? connect({ port: listener.port, host: '127.0.0.1' }) : connect({ path })
    let heard = ''
    socket.on('error', (error: NodeJS.ErrnoException) => {
      heard += error.code
    })
    socket.on('data', (chunk) => {
      heard += chunk
    })
    return { socket, heard: () => heard }
  }
  return { listener, dial, failures }
}

for (const place of ['tcp', 'unix']) {
  test(`a request whose end is missing gets no ordinary end without a reply over ${place}`, async (t) => {
    const protocols = newEndlessScans()
    for (const [kind, request, reply] of incomplete) {
      const { dial, failures } = await openFor(t, place, protocols[kind])
      const { socket, heard } = dial()
      socket.end(request)
      await waitFor(() => socket.closed)
      assert.equal(heard(), place === 'tcp' ? 'ECONNRESET' : reply, JSON.stringify(request))
      assert.deepEqual(failures, [])
    }
  })

  test(`a stop after PING or OPTIONS is no ordinary end over ${place}, since a request may follow`, async (t) => {
    const protocols = newEndlessScans()
    const greetings = [
      ['clamd', 'zIDSESSION\0zPING\0', '1: PONG\0', '2: stream: Assay.NotScanned.ServiceUnavailable FOUND\0'],
      ['icap', 'OPTIONS icap://x/avscan ICAP/1.0\r\nHost: x\r\n\r\n', '\r\n\r\n', toFailureResponse(abortedFailure)],
    ] as const
    for (const [kind, request, answerEnd, reply] of greetings) {
      const { listener, dial } = await openFor(t, place, protocols[kind])
      const { socket, heard } = dial()
      socket.write(request)
      await waitFor(() => heard().endsWith(answerEnd))
      const greeting = heard()
      listener.startStopping(60_000)
      await waitFor(() => socket.closed)
      assert.equal(heard().slice(greeting.length), place === 'tcp' ? 'ECONNRESET' : reply)
      await listener.close()
    }
  })

  for (const end of ['a stop', 'an invalid chunk']) {
    test(`${end} puts no text into a response that has begun over ${place}`, async (t) => {
      const { icap } = newEndlessScans({ trickles: true })
      const { listener, dial } = await openFor(t, place, icap)
      const { socket, heard } = dial()
      const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\n\r\n'
      const layout = `Encapsulated: res-hdr=0, res-body=${head.length}`
      socket.write(`RESPMOD icap://x/avscan ICAP/1.0\r\nHost: x\r\n${layout}\r\n\r\n${head}`)
      socket.write(`10000\r\n${'x'.repeat(0x10000)}\r\n`)
      await waitFor(() => heard().endsWith('\r\nxx\r\n') || heard().endsWith('1\r\nx\r\n1\r\nx\r\n'))
      const begun = heard()
      if (end === 'a stop') listener.startStopping(0)
      else socket.write('no size\r\n')
      await waitFor(() => socket.closed)
      assert.equal(heard().slice(begun.length), place === 'tcp' ? 'ECONNRESET' : '')
    })
  }
}

test('a stop while a scan is not admitted yet replies in the form of its command', async (t) => {
  const { promise: asked, resolve: noteAsked } = Promise.withResolvers<void>()
  const begin = () => {
    noteAsked()
    return new Promise<void>(() => {})
  }
  const { listener, dial } = await openFor(t, 'unix', newEndlessScans({ begin }).clamd)
  const { socket, heard } = dial()
  socket.write('zIDSESSION\0zINSTREAM\0')
  await asked
  listener.startStopping(0)
  await waitFor(() => socket.closed)
  assert.equal(heard(), '1: stream: Assay.NotScanned.ServiceUnavailable FOUND\0')
})
