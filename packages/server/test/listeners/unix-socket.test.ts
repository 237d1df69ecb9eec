import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, lstatSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, describe, test } from 'node:test'
import { serveClamd, toClamdReplies } from '../../src/listeners/clamd/serve-clamd.ts'
import type { Connection, LastReplies } from '../../src/listeners/connection.ts'
import { timeoutResponse, toFailureResponse } from '../../src/listeners/icap/icap-response.ts'
import { serveIcap } from '../../src/listeners/icap/serve-icap.ts'
import type { SocketAccess } from '../../src/listeners/listen-address.ts'
import { type Listener, openListener } from '../../src/listeners/listener.ts'
import { type ListenerScan, type ListenerScans, mostBytes } from '../../src/listeners/listener-scan.ts'
import * as clients from '../support/listener-clients.ts'
import { silentLog } from '../support/silent-log.ts'
import { waitFor } from '../support/wait-for.ts'

const access: SocketAccess = { mode: 0o660, uid: undefined, gid: undefined }

/** Scans that never end: `begun` counts them. */
function newEndlessScans() {
  const state = { begun: 0 }
  const scan: ListenerScan = {
    write: () => undefined,
    finish: () => {
      state.begun++
      return new Promise(() => {})
    },
    takeContent: () => new Promise(() => {}),
    abort: async () => {},
  }
  const scans: ListenerScans = { maxBytes: mostBytes, begin: async () => scan }
  return { scans, state }
}

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
    const { scans, state } = newEndlessScans()
    const serveAsClamd = (connection: Connection) =>
      serveClamd(connection, {
        scans,
        onFailure: 'found',
        findVersion: () => 'ClamAV',
        countLoad: () => ({ connections: 0, maxConnections: 1, waiting: 0 }),
      })
    const serveAsIcap = (connection: Connection) =>
      serveIcap(connection, {
        scans,
        reportUnscanned() {},
        onError: 'block',
        trickles: false,
        maxConnections: 10,
        findTag: () => '"tag"',
        server: 'Assay',
      })
    await open(clamdPath, serveAsClamd, toClamdReplies('found'))
    await open(icapPath, serveAsIcap, { timeout: timeoutResponse, fail: toFailureResponse })
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

describe('content whose end is missing', () => {
  const serveAsClamd = (scans: ListenerScans) => (connection: Connection) =>
    serveClamd(connection, {
      scans,
      onFailure: 'found',
      findVersion: () => 'ClamAV',
      countLoad: () => ({ connections: 0, maxConnections: 1, waiting: 0 }),
    })

  for (const place of ['tcp', 'unix']) {
    test(`gets no ordinary end without a reply over ${place}`, async (t) => {
      const dir = mkdtempSync(join(tmpdir(), 'assay-incomplete-'))
      const path = join(dir, 'clamd.sock')
      const failures: unknown[] = []
      const listener = await openListener({
        address: place === 'tcp' ? { host: '127.0.0.1', port: 0 } : { path, access },
        maxConnections: 10,
        serve: serveAsClamd(newEndlessScans().scans),
        replies: toClamdReplies('found'),
        onFailure: (error) => failures.push(error),
        onRejected() {},
        log: silentLog,
      })
      t.after(async () => {
        await listener.close()
        rmSync(dir, { recursive: true, force: true })
      })
      const socket = place === 'tcp' ? connect({ port: listener.port, host: '127.0.0.1' }) : connect({ path })
      let heard = ''
      socket.on('error', (error: NodeJS.ErrnoException) => {
        heard += error.code
      })
      socket.on('data', (chunk) => {
        heard += chunk
      })
      socket.end('zINSTREAM\0\0\0\0\x05con')
      await waitFor(() => socket.closed)
      assert.equal(heard, place === 'tcp' ? 'ECONNRESET' : 'stream: Assay.NotScanned.InvalidRequest FOUND\0')
      assert.deepEqual(failures, [])
    })
  }
})
